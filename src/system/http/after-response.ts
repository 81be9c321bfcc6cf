import type { ServerResponse } from 'node:http';

/**
 * Runs a restart of the hub, which closes this connection, only when the response is sent or the client has
 * disconnected, which may be before this call.
 */
export function afterResponse(raw: ServerResponse, run: () => void): void {
  if (raw.closed) run();
  else raw.once('close', run);
}
