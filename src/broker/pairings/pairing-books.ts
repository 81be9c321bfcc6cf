import type { Grant } from '../../core/grants/grant.ts';
import type { Pairing } from '../../core/pairings/pairing.ts';
import type { PairingContext } from './pairing-context.ts';

/** Tells whoever keeps books that a pairing has ended without a grant; any other step is told to nobody. */
export function tellFailure({ environment }: Pick<PairingContext, 'environment'>, { appliance, step }: Pairing): void {
  if (step.kind !== 'ended' || step.result.kind !== 'failed') return;
  const { clock, emit } = environment;
  emit({ kind: 'pairing_failed', appliance, at: clock.now(), reason: step.result.reason });
}

/** Tells whoever keeps books that a pairing has brought this grant. */
export function tellPaired(
  { environment: { clock, emit } }: Pick<PairingContext, 'environment'>,
  { appliance, scope }: Grant,
): void {
  emit({ kind: 'paired', appliance, at: clock.now(), scope });
}
