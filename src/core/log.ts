import { accessEvents, applianceEvents, connectionEvents, pairingEvents } from './log/appliance-events.ts';
import { clockEvents, grantEvents, noticeEvents } from './log/grant-events.ts';
import { hubEvents, listenerEvents, networkEvents } from './log/hub-events.ts';
import { certificateEvents, storeEvents } from './log/store-events.ts';
import type { EventMember, Level } from './log/table.ts';

/**
 * Every event that the hub logs, by subject. docs/log-events.md is made from this table. People
 * alert on events and members: to rename or remove one is a breaking change.
 */
export const eventsBySubject = {
  'The daemon': hubEvents,
  'Grants and tokens': grantEvents,
  Appliances: applianceEvents,
  Connections: connectionEvents,
  Pairings: pairingEvents,
  'Sign-in and rate limits': accessEvents,
  Notices: noticeEvents,
  'The store': storeEvents,
  'The clock': clockEvents,
  'Addresses and mDNS': networkEvents,
  'Control socket and metrics': listenerEvents,
  Certificates: certificateEvents,
};

/** Every event by its identifier. */
type LogEvents = typeof hubEvents &
  typeof grantEvents &
  typeof applianceEvents &
  typeof connectionEvents &
  typeof pairingEvents &
  typeof accessEvents &
  typeof noticeEvents &
  typeof storeEvents &
  typeof clockEvents &
  typeof networkEvents &
  typeof listenerEvents &
  typeof certificateEvents;

/** The members of a log line of any event. The type excludes `Secret`, so no secret can get into a line. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** The identifier of an event, a key of the table above. */
export type LogEvent = keyof LogEvents;
/** The levels at which an event is logged. */
export type LevelOf<E extends LogEvent> = LogEvents[E]['levels'][number];
/** The events that may be logged at a level. */
type EventAt<L extends Level> = { [E in LogEvent]: L extends LevelOf<E> ? E : never }[LogEvent];

interface Types {
  readonly string: string;
  readonly number: number;
  readonly boolean: boolean;
}
type Value<M> = M extends EventMember ? Types[M['type']] : never;
type OptionalName<M> = { [N in keyof M]: M[N] extends { readonly optional: true } ? N : never }[keyof M];
type Values<M> = { readonly [N in Exclude<keyof M, OptionalName<M>>]: Value<M[N]> } & {
  readonly [N in OptionalName<M>]?: Value<M[N]> | null | undefined;
};

type ArgumentOf<M> = [keyof M] extends [OptionalName<M>]
  ? [keyof M] extends [never]
    ? []
    : [members?: Values<M>]
  : [members: Values<M>];

/** The members of an event, as an argument list; empty if the event has no members. */
export type EventMembersOf<E extends LogEvent> = E extends LogEvent ? ArgumentOf<LogEvents[E]['members']> : never;

/** Logs an event at a level. */
type LogMethod<L extends Level> = <E extends EventAt<L>>(event: E, ...members: EventMembersOf<E>) => void;

/** The log. Each line is one event of the table, with a level and members that the table permits. */
export interface Log {
  readonly debug: LogMethod<'debug'>;
  readonly info: LogMethod<'info'>;
  readonly warn: LogMethod<'warn'>;
  readonly error: LogMethod<'error'>;
  /** Logs an event at a level that is known only at run time. */
  readonly at: <E extends LogEvent>(level: LevelOf<E>, event: E, ...members: EventMembersOf<E>) => void;
}
