import { systemTimers } from '../../system/clock.ts';

/** Milliseconds after which a page that does not come is given up. */
const PAGE_TIMEOUT = 20_000;
/** How often a browser is sent to a program that does not listen yet, and the milliseconds between. */
const ATTEMPTS = 20;
const ATTEMPT_INTERVAL = 200;

/** What the user's browser saw at the redirect URI of the client. */
export interface Visit {
  /** Null if the client did not answer. */
  readonly status: number | null;
}

/**
 * Opens an address of the client, as the user's browser does.
 * @param isExpected whether a program that does not listen will do so soon: it may print its URL before
 */
export async function visit(
  url: URL,
  { isExpected, signal }: { readonly isExpected: () => boolean; readonly signal: AbortSignal },
): Promise<Visit> {
  for (let attempt = 0; attempt < ATTEMPTS && !signal.aborted; attempt++) {
    try {
      const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(PAGE_TIMEOUT) });
      await response.arrayBuffer();
      return { status: response.status };
    } catch (error) {
      if (!isRefusedConnection(error) || !isExpected()) break;
      await systemTimers.sleep(ATTEMPT_INTERVAL, signal);
    }
  }
  return { status: null };
}

function isRefusedConnection(error: unknown): boolean {
  const { cause } = error instanceof Error ? error : {};
  return typeof cause === 'object' && cause !== null && 'code' in cause && cause.code === 'ECONNREFUSED';
}
