// The reports of a bridge, look by look, for a day and longer. Keeps all of the newest looks, and of the
// older ones every second, fourth, eighth …, so that the charts stay fast.

const MOST = 4096;
const NEWEST = MOST / 2;

export class History {
  times: number[] = [];
  names: string[] = [];
  private looks: Record<string, number>[] = [];
  private numbers: number[] = [];
  private count = 0;
  private stride = 1; // between the numbers of two consecutive older looks

  add(time: number, look: Record<string, number>): void {
    this.times.push(time);
    this.looks.push(look);
    this.numbers.push(this.count++);
    this.names = Object.keys(look);
    if (this.times.length <= MOST) return;
    const newest = this.count - NEWEST;
    // Frees a quarter of the room, so that the next looks need no thinning.
    while (newest / this.stride > MOST / 4) this.stride *= 2;
    const kept = this.numbers.map((number) => number >= newest || number % this.stride === 0);
    this.times = this.times.filter((_, i) => kept[i]);
    this.looks = this.looks.filter((_, i) => kept[i]);
    this.numbers = this.numbers.filter((_, i) => kept[i]);
  }

  of(name: string): (number | null)[] {
    return this.looks.map((look) => look[name] ?? null);
  }

  // The growth per second; null where the bridge restarted.
  rate(name: string): (number | null)[] {
    return this.of(name).map((now, i, all) => {
      const before = i > 0 ? all[i - 1] : null;
      if (now === null || before === null || now < before) return null;
      return (now - before) / (this.times[i] - this.times[i - 1]);
    });
  }
}
