import { accessEvents, applianceEvents, connectionEvents, pairingEvents } from './appliance-events.ts';
import { clockEvents, grantEvents, noticeEvents } from './grant-events.ts';
import { hubEvents, listenerEvents, networkEvents } from './hub-events.ts';
import { certificateEvents, storeEvents } from './store-events.ts';

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
export type LogEvents = typeof hubEvents &
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
