import { messageOf } from '../core/failure.ts';
import { integrityOf } from '../store/recovery/integrity.ts';
import { fail, needsRoot, ok, type Said, warn } from './finding.ts';
import type { Subject } from './subject.ts';

/** Whether the store is whole. A running hub keeps it locked, and says itself what is wrong with it. */
export async function checkStore({ configuration, hub, isRoot }: Subject): Promise<Said[]> {
  if (hub.kind === 'running') {
    const found = (hub.hub.problems ?? []).filter(({ code }) => code.startsWith('store_'));
    if (found.length === 0) return [ok('the running hub has the store open, and finds nothing wrong with it')];
    return found.map(({ code, message }) => {
      if (code === 'store_recovered') return warn(`${message}: pair what has lost its grant again, and make a backup`);
      if (code === 'store_changed') return fail(`${message}: see docs/stolen-card.md if somebody had the hub in hand`);
      return fail(`${message}: make room, or see to the disk`);
    });
  }
  if (configuration === null) return [warn('the store could not be looked at: see to the configuration first')];
  try {
    const integrity = integrityOf(configuration.stateDirectory);
    if (integrity.kind === 'absent') return [ok('there is no store yet: the hub makes it when it is started first')];
    if (integrity.kind === 'whole') return [ok('the store is whole (a copy of it was looked at)')];
    return [
      fail(`the store is damaged (${integrity.why}): start the hub, which mends what it can, or "latchkey restore"`),
    ];
  } catch (error) {
    return [isRoot ? fail(`the store can't be read: ${messageOf(error)}`) : needsRoot('the store')];
  }
}
