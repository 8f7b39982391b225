// What a bridge said of itself, look by look, for a day and longer: the older half loses every second
// look when there are too many, so that the charts stay as quick as they were.

const MOST = 4096;

export class History {
  times: number[] = [];
  names: string[] = [];
  private looks: Record<string, number>[] = [];

  add(time: number, look: Record<string, number>): void {
    this.times.push(time);
    this.looks.push(look);
    this.names = Object.keys(look);
    if (this.times.length <= MOST) return;
    const kept = (_: unknown, i: number) => i >= MOST / 2 || i % 2 === 0;
    this.times = this.times.filter(kept);
    this.looks = this.looks.filter(kept);
  }

  of(name: string): (number | null)[] {
    return this.looks.map((look) => look[name] ?? null);
  }

  // By the second; nothing where the bridge began anew.
  rate(name: string): (number | null)[] {
    return this.of(name).map((now, i, all) => {
      const before = i > 0 ? all[i - 1] : null;
      if (now === null || before === null || now < before) return null;
      return (now - before) / (this.times[i] - this.times[i - 1]);
    });
  }
}
