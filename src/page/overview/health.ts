import type { Standing } from '../appliance/standing.ts';
import type { Mood } from '../signs.ts';
import type { Texts } from '../texts/en.ts';

/** An appliance and how it stands. */
export interface Placed {
  readonly name: string;
  readonly standing: Standing;
}

/** The hub's health in one sentence. */
export interface Health {
  readonly mood: Mood;
  readonly sentence: string;
}

/** @param hubNeeds whether something is wrong with the hub as a whole */
export function healthOf(appliances: readonly Placed[], hubNeeds: boolean, { overview }: Texts): Health {
  const of = (...kinds: readonly Standing['kind'][]) =>
    appliances.filter(({ standing }) => kinds.includes(standing.kind)).map(({ name }) => name);
  const needy = appliances.filter(({ standing }) => standing.needsPerson);
  const [first] = needy;
  if (first !== undefined) {
    if (needy.length > 1) return { mood: 'bad', sentence: overview.severalNeed(needy.length) };
    return { mood: 'bad', sentence: needOf(first, overview) };
  }
  if (hubNeeds) return { mood: 'bad', sentence: overview.hubNeeds };
  const tell = (mood: Mood, names: string[], one: (name: string) => string, several: (count: number) => string) => {
    const [name] = names;
    if (name === undefined) return null;
    return { mood, sentence: names.length === 1 ? one(name) : several(names.length) };
  };
  return (
    tell('warn', of('held_up', 'interrupted'), overview.heldUp, overview.severalHeldUp) ??
    tell('waiting', of('waiting_for_login'), overview.waits, overview.severalWait) ??
    tell('neutral', of('not_connected'), overview.needsFirstLogin, overview.severalNotConnected) ??
    tell('good', of('connected'), overview.one, overview.all) ?? { mood: 'neutral', sentence: overview.none }
  );
}

function needOf({ name, standing }: Placed, overview: Texts['overview']): string {
  switch (standing.kind) {
    case 'log_in_again':
      return overview.needsLogin(name);
    case 'waiting_for_approval':
      return overview.needsApproval(name);
    default:
      return overview.needsSeeing(name);
  }
}
