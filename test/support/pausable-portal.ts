import type { EmulatorOptions, InterceptedRequest } from '../../src/emulator/index.ts';
import { eventually } from './hub-process.ts';
import { startPortal } from './portal.ts';

/** Where a request is kept: when it is here and nothing was done with it, or when what it asks is done and is to be answered. */
type Moment = 'received' | 'answering';

/** Starts a portal whose token endpoint keeps requests waiting for as long as a test likes. */
export async function startPausablePortal(options: EmulatorOptions = {}) {
  const kept: ((isDropped: boolean) => void)[] = [];
  let held: Moment | null = null;
  const keep = (moment: Moment) => async (exchange: InterceptedRequest) => {
    if (exchange.endpoint !== 'token' || held !== moment) return;
    if (await new Promise<boolean>((resolve) => kept.push(resolve))) exchange.drop();
  };
  const end = (isDropped: boolean) => {
    held = null;
    for (const letGo of kept.splice(0)) letGo(isDropped);
  };
  const intercept = { received: keep('received'), answering: keep('answering') };
  const emulator = await startPortal({ ...options, intercept });
  return {
    emulator,
    /** From now on requests are kept. */
    hold(moment: Moment = 'answering') {
      held = moment;
    },
    /** Resolves when so many are. */
    kept: (count: number) => eventually(async () => kept.length >= count),
    /** None is kept any more, and those that were go on. */
    release: () => end(false),
    /** None is kept any more, and those that were get no answer. */
    drop: () => end(true),
    async [Symbol.asyncDispose]() {
      end(true);
      await emulator.close();
    },
  };
}
