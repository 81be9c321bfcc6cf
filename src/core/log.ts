import type { LogEvents } from './log/events.ts';
import type { Level, Member } from './log/table.ts';

/** The members of a log line, whatever its event. A `Secret` is none of these, so it can't get into one. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** The identifier of an event, see core/log/events.ts. */
export type LogEvent = keyof LogEvents;
/** The levels that an event is logged at. */
export type LevelOf<E extends LogEvent> = LogEvents[E]['levels'][number];
/** The events that are logged at a level. */
type EventAt<L extends Level> = { [E in LogEvent]: L extends LevelOf<E> ? E : never }[LogEvent];

interface Types {
  readonly string: string;
  readonly number: number;
  readonly boolean: boolean;
}
type Value<M> = M extends Member ? Types[M['type']] : never;
type OptionalName<M> = { [N in keyof M]: M[N] extends { readonly optional: true } ? N : never }[keyof M];
type Values<M> = { readonly [N in Exclude<keyof M, OptionalName<M>>]: Value<M[N]> } & {
  readonly [N in OptionalName<M>]?: Value<M[N]> | null | undefined;
};

type ArgumentOf<M> = [keyof M] extends [OptionalName<M>]
  ? [keyof M] extends [never]
    ? []
    : [members?: Values<M>]
  : [members: Values<M>];

/** The members of an event, as an argument list: none if it has none. */
export type MembersOf<E extends LogEvent> = E extends LogEvent ? ArgumentOf<LogEvents[E]['members']> : never;

/** Logs an event at a level. */
type LogMethod<L extends Level> = <E extends EventAt<L>>(event: E, ...members: MembersOf<E>) => void;

/** The log: one event of the table a line, at a level and with the members that the table gives it. */
export interface Log {
  readonly debug: LogMethod<'debug'>;
  readonly info: LogMethod<'info'>;
  readonly warn: LogMethod<'warn'>;
  readonly error: LogMethod<'error'>;
  /** Logs an event whose level depends on something. */
  readonly at: <E extends LogEvent>(level: LevelOf<E>, event: E, ...members: MembersOf<E>) => void;
}
