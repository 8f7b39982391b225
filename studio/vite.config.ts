import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";

const PAGE = "../seustream/studio/page";

// Writes a hash of the sources that the bundle was made from; a test compares it with the present sources.
function stamp(): Plugin {
  return {
    name: "stamp",
    closeBundle() {
      const sources = [...readdirSync("src").map((name) => `src/${name}`), "index.html", "package-lock.json"];
      const hash = createHash("sha256");
      for (const name of sources.sort()) hash.update(name).update("\0").update(readFileSync(name));
      writeFileSync(`${PAGE}/sources.sha256`, `${hash.digest("hex")}\n`);
    },
  };
}

// The bundle goes into the Python package, so that users need no Node.
export default defineConfig({
  plugins: [svelte(), stamp()],
  base: "./",
  build: {
    outDir: PAGE,
    emptyOutDir: true,
    chunkSizeWarningLimit: 3000,
    // Fixed names: the bundle is kept beside the sources, and a change to it is a change to one file.
    rolldownOptions: {
      output: { entryFileNames: "studio.js", assetFileNames: "[name][extname]", chunkFileNames: "[name].js" },
    },
  },
});
