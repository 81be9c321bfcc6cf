/** A log line's level; `debug` lines appear only with `--log-level debug`. */
export type Level = 'debug' | 'info' | 'warn' | 'error';

/** A member of a log line. An optional one may be missing or null. */
export interface EventMember {
  readonly type: 'string' | 'number' | 'boolean';
  readonly meaning: string;
  readonly optional: boolean;
}

/** Names that an event's members must not use: `system/log.ts` adds members with these names. */
interface Reserved {
  readonly level?: never;
  readonly time?: never;
  readonly event?: never;
  readonly suppressed?: never;
}

/** The members of an event by name. */
export type EventMembers = Readonly<Record<string, EventMember>> & Reserved;

/** The table's entry for an event. */
export interface EventEntry<L extends Level = Level, M extends EventMembers = EventMembers> {
  readonly levels: readonly L[];
  /** What it means, and what to do about it, if anything. */
  readonly meaning: string;
  readonly members: M;
}

export function event<L extends Level>(levels: L | readonly L[], meaning: string): EventEntry<L, Record<never, never>>;
export function event<L extends Level, M extends EventMembers>(
  levels: L | readonly L[],
  meaning: string,
  members: M,
): EventEntry<L, M>;
/** Creates an entry of the table. */
export function event(levels: Level | readonly Level[], meaning: string, members: EventMembers = {}): EventEntry {
  return { levels: typeof levels === 'string' ? [levels] : levels, meaning, members };
}

/** A string member. */
export function text(meaning: string) {
  return { type: 'string', meaning, optional: false } as const;
}

/** A number member. */
export function number(meaning: string) {
  return { type: 'number', meaning, optional: false } as const;
}

/** A boolean member. */
export function flag(meaning: string) {
  return { type: 'boolean', meaning, optional: false } as const;
}

/** The same member, which a line may leave out or set to null. */
export function optional<T extends EventMember['type']>({ type, meaning }: EventMember & { readonly type: T }) {
  return { type, meaning, optional: true } as const;
}

export const appliance = text('name of the appliance');
export const connection = text('name of the connection');
/** A connection that may have been removed in the meantime. */
export const connectionIfKnown = optional(text('name of the connection; missing if it was removed'));
export const error = text('what went wrong, in words');
export const retryIn = number('seconds until the next attempt');
/** Who did it, if a reverse proxy has named them. */
export const user = optional(text('name of the user who did it, as the reverse proxy of `[ingress]` reports it'));
export const whatToDo = text('what to do about it, in words');
/** How long a problem has lasted, and how many connections it affects. */
export const repeatedProblemMembers = {
  tries: optional(number('how often it has occurred since it began')),
  duration: optional(number('seconds since it began')),
  connections: optional(number('how many connections it has affected')),
} as const;
