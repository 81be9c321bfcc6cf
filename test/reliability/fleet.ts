import { request } from 'undici';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { eventually, type HubProcess, type LoginPortal, stateParameterOf } from '../support/hub-process.ts';

/** Fetches a page like a browser. @returns the page's text */
export async function fetchPage(location: string): Promise<string> {
  const { body } = await request(location);
  return body.text();
}

/** Logs in through a link and follows the redirect to the hub. @returns the text of the page there */
export async function logIn(portal: LoginPortal, link: URL | string | undefined): Promise<string> {
  return fetchPage((await portal.login({ state: stateParameterOf(link), user: 'demo' })).location);
}

/** Registers appliances and pairs them. */
export async function pairFleet(
  hub: HubProcess,
  emulator: Emulator,
  names: readonly string[],
): Promise<CredentialsResponse[]> {
  const fleet: CredentialsResponse[] = [];
  for (const name of names) {
    fleet.push(await hub.addAppliance(name, 'Monitoring'));
    await hub.pair(name, emulator);
  }
  return fleet;
}

/** Forces a refresh without waiting for its result. */
export function startRefresh(hub: HubProcess, name: string): void {
  void hub.ask((control) => control.request('refresh', { name })).catch(() => undefined);
}

/** Resolves when the control socket is closed: the hub has handled a signal to stop. */
export async function waitUntilStopping(hub: HubProcess): Promise<void> {
  await eventually(async () => (await hub.status().catch(() => null)) === null);
}

/**
 * Forces refreshes until one succeeds. After the end of a fault the first one may join an attempt that has met the fault.
 */
export async function refreshUntilActive(hub: HubProcess, name: string): Promise<void> {
  await eventually(async () => {
    const { state, problem } = await hub.ask((control) => control.request('refresh', { name }));
    return state === 'active' && problem === null;
  });
}

/** How often each refresh token was sent, in the order of first use. The emulator's log masks equal tokens equally. */
export function countRefreshSends(emulator: Emulator): { readonly sends: number; readonly times: number[] }[] {
  const byToken = new Map<string, number[]>();
  for (const { endpoint, form, time } of emulator.requests) {
    const token = form['refresh_token'];
    if (endpoint !== 'token' || token === undefined) continue;
    byToken.set(token, [...(byToken.get(token) ?? []), Date.parse(time)]);
  }
  return [...byToken.values()].map((times) => ({ sends: times.length, times }));
}

/** How often each code was sent to the token endpoint. */
export function countCodeSends(emulator: Emulator): number[] {
  const byCode = new Map<string, number>();
  for (const { endpoint, form } of emulator.requests) {
    const code = form['code'];
    if (endpoint === 'token' && code !== undefined) byCode.set(code, (byCode.get(code) ?? 0) + 1);
  }
  return [...byCode.values()];
}
