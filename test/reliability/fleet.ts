import { request } from 'undici';
import type { ApplianceAnswer, CredentialsAnswer } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { eventually, type HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';

/** Waits until an appliance stands as it should. */
export function until(
  hub: HubProcess,
  name: string,
  stands: (status: ApplianceAnswer) => boolean,
  seconds = 15,
): Promise<ApplianceAnswer> {
  return eventually(async () => {
    const status = await hub.appliance(name);
    return stands(status) && status;
  }, seconds);
}

/** Registers an appliance. */
export async function addAppliance(hub: HubProcess, name: string, portal?: string): Promise<CredentialsAnswer> {
  const credentials = await hub.ask((control) => control.addAppliance(name, 'Monitoring', portal ?? null));
  rememberSecrets([credentials.client_secret]);
  return credentials;
}

/** Starts a pairing. @returns the state of its link */
export async function beginPairing(hub: HubProcess, name: string): Promise<string> {
  await hub.ask((control) => control.pair(name));
  const { authorize_url } = await until(hub, name, (status) => status.authorize_url !== undefined);
  return stateOf(authorize_url);
}

/** The state in a link. */
export function stateOf(authorizeUrl: string | undefined): string {
  return new URL(authorizeUrl ?? 'no:link').searchParams.get('state') ?? '';
}

/** Goes where a browser would be sent. @returns the page's text */
export async function visit(location: string): Promise<string> {
  const { body } = await request(location);
  return body.text();
}

/** Logs in and lets the browser bring the code to the hub. @returns where the browser was sent */
export async function logIn(emulator: Emulator, state: string): Promise<string> {
  const { location } = await emulator.login({ state, user: 'demo' });
  await visit(location);
  return location;
}

/** Registers appliances and pairs them. */
export async function pairFleet(
  hub: HubProcess,
  emulator: Emulator,
  names: readonly string[],
): Promise<CredentialsAnswer[]> {
  const fleet: CredentialsAnswer[] = [];
  for (const name of names) {
    fleet.push(await addAppliance(hub, name));
    await logIn(emulator, await beginPairing(hub, name));
    await until(hub, name, ({ state }) => state === 'active');
  }
  return fleet;
}

/** Asks for a refresh, as a person would, without waiting for what becomes of it. */
export function startRefresh(hub: HubProcess, name: string): void {
  void hub.ask((control) => control.refresh(name)).catch(() => undefined);
}

/** How often each refresh token was sent, in the order of their first use; tokens are masked in the emulator's log. */
export function refreshSends(emulator: Emulator): { readonly sends: number; readonly times: number[] }[] {
  const byToken = new Map<string, number[]>();
  for (const { endpoint, form, time } of emulator.requests) {
    const token = form['refresh_token'];
    if (endpoint !== 'token' || token === undefined) continue;
    byToken.set(token, [...(byToken.get(token) ?? []), Date.parse(time)]);
  }
  return [...byToken.values()].map((times) => ({ sends: times.length, times }));
}

/** How often each code was sent to the token endpoint. */
export function codeSends(emulator: Emulator): number[] {
  const byCode = new Map<string, number>();
  for (const { endpoint, form } of emulator.requests) {
    const code = form['code'];
    if (endpoint === 'token' && code !== undefined) byCode.set(code, (byCode.get(code) ?? 0) + 1);
  }
  return [...byCode.values()];
}
