import { messageOf } from '../../core/failure.ts';
import { isInstallerInitiated, linksOf, type Pairing } from '../../core/pairings/pairing.ts';
import { type LoginReceiver, pollForResult } from './code-polling.ts';
import type { LinkRenewal } from './link-renewal.ts';
import type { LinkRequests } from './link-requests.ts';
import type { PairingContext } from './pairing-context.ts';
import type { PairingExchange } from './pairing-exchange.ts';
import type { PairingStateMachine } from './pairing-state-machine.ts';

/** The parts of a pairing that its steps use. */
export interface PairingParts {
  readonly context: PairingContext;
  readonly state: PairingStateMachine;
  readonly links: LinkRequests;
  readonly renewal: LinkRenewal;
  readonly exchange: PairingExchange;
  readonly receiver: LoginReceiver;
}

/**
 * Runs a pairing from its current step, until it ends, another hub becomes its owner or the hub stops.
 * @param before as the last run, or the last owner, has left it
 */
export async function runPairing(parts: PairingParts, before: Pairing): Promise<void> {
  const { state } = parts;
  const { ownership, log, name } = state;
  try {
    if (before.step.kind === 'exchanging') {
      const since = new Date(before.step.since.wall).toISOString();
      log.warn('code_exchange_interrupted', { connection: name, since });
      // Saved, so that it is logged only once, even if the hub restarts before the portal returns a fresh link.
      await state.saveIfPossible(state.pairing);
    }
    await runSteps(parts);
  } catch (error) {
    log.error('pairing_crashed', { connection: name, error: messageOf(error) });
    if (!ownership.aborted) await state.dispatch({ kind: 'failed', reason: 'cancelled' });
  }
}

/**
 * Does what each step needs.
 */
async function runSteps({ context, state, links, renewal, exchange, receiver }: PairingParts): Promise<void> {
  const { ownership } = state;
  const poll = () => pollForResult(context, state, receiver);
  while (!ownership.aborted && state.isRunning) {
    await state.guardAgainstSpin(state.signal);
    const { step } = state.pairing;
    switch (step.kind) {
      case 'asking':
        await Promise.all([requestLink(state, links), linksOf(step).length > 0 && poll()]);
        break;
      case 'waiting':
        await Promise.all([poll(), renewal.run()]);
        break;
      case 'exchanging':
        await exchange.whenIdle();
        break;
      case 'ended':
        return;
    }
  }
}

/**
 * Requests links until the pairing changes its step. Without an installer it waits until a person opens the pairing.
 */
async function requestLink(state: PairingStateMachine, links: LinkRequests): Promise<void> {
  const { signal } = state;
  for (let failures = 0; !signal.aborted && state.isRunning; ) {
    if (isInstallerInitiated(state.pairing)) failures = (await links.requestOnce(failures)) ? 0 : failures + 1;
    else await state.pause(Number.POSITIVE_INFINITY, signal);
  }
}
