import type { EmulatorOptions, InterceptedRequest } from '../../src/emulator/index.ts';
import { eventually } from './hub-process.ts';
import { startPortal } from './portal.ts';

/** When a request is held: on arrival before any work, or after the work before the response. */
type Moment = 'received' | 'answering';

/** Starts a portal whose token endpoint can hold requests. */
export async function startPausablePortal(options: EmulatorOptions = {}) {
  const waiting: ((isDropped: boolean) => void)[] = [];
  let heldMoment: Moment | null = null;
  const hold = (moment: Moment) => async (exchange: InterceptedRequest) => {
    if (exchange.endpoint !== 'token' || heldMoment !== moment) return;
    if (await new Promise<boolean>((resolve) => waiting.push(resolve))) exchange.drop();
  };
  const end = (isDropped: boolean) => {
    heldMoment = null;
    for (const release of waiting.splice(0)) release(isDropped);
  };
  const intercept = { received: hold('received'), answering: hold('answering') };
  const emulator = await startPortal({ ...options, intercept });
  return {
    emulator,
    /** Holds requests from now on. */
    hold(moment: Moment = 'answering') {
      heldMoment = moment;
    },
    /** Resolves when this many are held. */
    kept: (count: number) => eventually(async () => waiting.length >= count),
    /** Stops holding, and lets the held requests continue. */
    release: () => end(false),
    /** Stops holding, and drops the held requests without a response. */
    drop: () => end(true),
    async [Symbol.asyncDispose]() {
      end(true);
      await emulator.close();
    },
  };
}
