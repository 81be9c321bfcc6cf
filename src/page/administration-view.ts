import type { Administration } from '../core/administration.ts';

/**
 * What pages read of the hub. Whatever they change goes through the request's own administration
 * (`AuthenticatedRequest`), so that it is recorded in the name of the user.
 */
export type AdministrationView = Pick<
  Administration,
  | 'status'
  | 'portals'
  | 'describePortals'
  | 'cloudChoices'
  | 'enteredPortal'
  | 'reloadOutcome'
  | 'history'
  | 'label'
  | 'getPairing'
  | 'getBatch'
  | 'followPairing'
>;
