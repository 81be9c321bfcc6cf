import type { Portal } from './portal.ts';

/** A login page of the helper flow that was opened, and at which the user has neither logged in nor refused. */
export interface WaitingLogin {
  /** The state's id; `login` takes it like the state itself. */
  readonly state: string;
  /** The client's id. */
  readonly client: string;
  /** RFC 3339, UTC. */
  readonly opened: string;
  /** When the link ends. RFC 3339, UTC. */
  readonly expires: string;
}

/** The logins that wait for somebody, the oldest first. */
export function waitingLogins({ runs, now }: Portal): WaitingLogin[] {
  return runs.all().flatMap(({ state, login, done }) => {
    if (login === null || done || state.expiresAt <= now()) return [];
    const opened = new Date(login.openedAt).toISOString();
    return [{ state: state.id, client: state.clientId, opened, expires: new Date(state.expiresAt).toISOString() }];
  });
}
