import { setTimeout as sleep } from 'node:timers/promises';
import type { ApplianceResponse } from '../../src/control/messages.ts';
import { messageOf } from '../../src/core/failure.ts';
import type { RetryLostAnswer } from '../../src/core/grants/retry-delays.ts';
import { TokenLoad, tokenExpiry } from '../reliability/load.ts';
import { eventually } from '../support/hub-process.ts';
import { ChaosHarness, type SentCredential } from './chaos-harness.ts';
import {
  type Experiment,
  type ExperimentOptions,
  type ExperimentResult,
  mergeResults,
  prefixFigures,
} from './experiment.ts';

/** ms between two requests of one appliance, of those that are looked at second by second too. */
const ASKING = 2000;
const ASKING_OFTEN = 300;

export const experiment: Experiment = {
  name: 'Lost answers',
  promise:
    'With the answer to every third refresh lost after the portal has acted on it, no grant is lost where the portal has a grace time, no family is revoked while its token could still serve, and what is lost is said.',
  async run(scale) {
    return mergeResults(await Promise.all([graceTime(scale), revokedFamilies(scale), refusals(scale)]));
  },
};

/** A portal that gives the same answer again for 10 s, and `early`: nothing is lost. */
async function graceTime(scale: ExperimentOptions): Promise<ExperimentResult> {
  const [wanted, lifetime] = scale.long ? [200, 12] : [4, 6];
  const flags = ['--token-lifetime', `${lifetime}s`, '--refresh-grace-time', '10s'];
  const names = namesOf(scale, 4);
  await using house = await ChaosHarness.startWithSeparateClients(new Map(names.map((name) => [name, 'early'])), flags);
  const broken: string[] = [];
  const fleet = await house.pairAppliances(names);
  const load = await TokenLoad.start(house.hub, house.portal, fleet, ASKING);
  await loseEveryThird(house, names, 2);
  for (let lost = 0; lost < wanted && !scale.signal.aborted; ) {
    await sleep(1000);
    const before = lost;
    lost = (await losses(house)).length;
    if (lost !== before) scale.progress(`grace time: ${lost} answers lost`);
    for (const { name, state, problem } of await house.statuses()) {
      if (state === 'needs_pairing' || state === 'unpaired') broken.push(`${name} is ${state}: ${problem?.message}`);
    }
    if (broken.length > 0) break;
  }
  const lost = await losses(house);
  await house.portal.ask('DELETE', '/_emulator/faults');
  for (const name of names) {
    await house.hub
      .until(name, ({ state }) => state === 'active', 30)
      .then(() => house.hub.ask((control) => control.refresh(name)))
      .catch((error: unknown) => broken.push(`${name} does not recover: ${messageOf(error)}`));
  }
  await load[Symbol.asyncDispose]();
  if (load.refused.length > 0) broken.push(`${load.refused.length} tokens were handed out that the portal refused`);
  return named('grace time, early', broken, {
    'answers lost': lost.length,
    'grants lost': (await house.statuses()).filter(({ state }) => state !== 'active').length,
    'hand-outs': load.handOuts.length,
    'told to come back later (503)': load.refusals.length,
  });
}

/** A portal that revokes the family on reuse, and `late`: the old token is only used when the one at hand has ended. */
async function revokedFamilies(scale: ExperimentOptions): Promise<ExperimentResult> {
  const [wanted, lifetime] = scale.long ? [100, 20] : [4, 12];
  const flags = ['--token-lifetime', `${lifetime}s`, '--on-reuse', 'revoke-family'];
  const names = namesOf(scale, 4);
  await using house = await ChaosHarness.startWithSeparateClients(new Map(names.map((name) => [name, 'late'])), flags);
  const broken: string[] = [];
  const fleet = await house.pairAppliances(names);
  const load = await TokenLoad.start(house.hub, house.portal, fleet, ASKING);
  // The first loss comes when nearly all of the token's life is still to be lost.
  await loseEveryThird(house, names, 3);
  let needed = 0;
  while (needed < wanted && !scale.signal.aborted) {
    await sleep(500);
    for (const status of (await house.statuses()).filter(({ state }) => state === 'needs_pairing')) {
      needed += 1;
      broken.push(...misnamed(status));
      await house.pair(status.name);
      scale.progress(`revoke-family: ${needed} families revoked`);
    }
  }
  await load[Symbol.asyncDispose]();
  const sends = await house.sends('refresh_token');
  const refused = sends.filter(({ status }) => status === 400);
  // By what the hub itself has said of the token: on a busy machine that ends before the portal takes it to have ended.
  const early = refused.filter(({ grant, token, at }) =>
    load.handOuts.some((one) => one.grant === grant && one.issuedAt === issuedAt(token) && at < tokenExpiry(one)),
  );
  if (early.length > 0) broken.push(`${early.length} families were revoked while their token could still serve`);
  if (load.refused.length > 0) broken.push(`${load.refused.length} tokens were handed out that the portal refused`);
  return named('revoke-family, late', broken, {
    'answers lost': (await losses(house)).length,
    'families revoked': (await house.grants()).filter(({ revoked }) => revoked).length,
    'of them while the token could still serve': early.length,
    'hand-outs': load.handOuts.length,
  });
}

/** A portal that refuses reuse, both modes: the grant is lost, and the token at hand is served to its last second. */
async function refusals(scale: ExperimentOptions): Promise<ExperimentResult> {
  const names = namesOf(scale, 2);
  const modes = new Map(
    names.map((name, index): [string, RetryLostAnswer] => [name, index % 2 === 0 ? 'early' : 'late']),
  );
  const lifetime = scale.long ? 30 : 10;
  await using house = await ChaosHarness.startWithSeparateClients(modes, ['--token-lifetime', `${lifetime}s`]);
  const broken: string[] = [];
  const fleet = await house.pairAppliances(names);
  for (const client of house.clients.values()) await house.portal.addFault({ ...LOSS, client, times: 1 });
  const load = await TokenLoad.start(house.hub, house.portal, fleet, ASKING_OFTEN);
  await Promise.all(names.map((name) => house.hub.ask((control) => control.refresh(name))));
  for (const name of names) {
    const status = await house.hub.until(name, ({ state }) => state === 'needs_pairing', 15).catch(() => null);
    if (status === null) broken.push(`${name} does not need pairing`);
    else broken.push(...misnamed(status));
  }
  const refusedAll = async () => names.every((name) => load.refusals.some(({ appliance }) => appliance === name));
  await eventually(refusedAll, 2 * lifetime).catch(() => broken.push('a token is served without end'));
  await load[Symbol.asyncDispose]();
  for (const { appliance, status } of load.unfounded)
    broken.push(`${appliance} was refused a token (HTTP ${status}) that still lived`);
  if (load.refused.length > 0) broken.push(`${load.refused.length} tokens were handed out that the portal refused`);
  return named('reuse refused, both modes', broken, {
    'grants lost, each said to be by a lost answer': (await house.statuses()).filter(
      ({ state }) => state === 'needs_pairing',
    ).length,
    'least that was left of a token when it was served, s': Math.min(
      ...load.handOuts.map(({ expiresIn }) => expiresIn),
    ),
    'hand-outs': load.handOuts.length,
  });
}

/** Twenty appliances in the long form. @param few in the short one */
function namesOf({ long }: ExperimentOptions, few: number): string[] {
  return Array.from({ length: long ? 20 : few }, (_, index) => `appliance-${index + 1}`);
}

const LOSS = { kind: 'commit_then_drop', endpoint: 'token', grant_type: 'refresh_token' };

/**
 * From now on the portal loses the answer to every third refresh of each grant.
 * @param refreshes how many a person asks for, one after the other; none after a lost answer, since the hub would try again at once
 *   for a person. On a busy machine its own refreshes come between them.
 */
async function loseEveryThird(house: ChaosHarness, names: readonly string[], refreshes: number): Promise<void> {
  for (const client of house.clients.values()) await house.portal.addFault({ ...LOSS, client, every: 3, times: null });
  for (const name of names) {
    for (let asked = 0; asked < refreshes && (await house.hub.appliance(name)).problem === null; asked++) {
      await house.hub.ask((control) => control.refresh(name));
    }
  }
}

/** The refreshes whose answer was lost. */
async function losses(house: ChaosHarness): Promise<readonly SentCredential[]> {
  return (await house.sends('refresh_token')).filter(({ status, successor }) => status === null && successor !== null);
}

/** When a refresh token and the access token beside it were issued, in ms since 1970: the emulator's tokens say so in the clear. */
function issuedAt(refreshToken: string): number {
  return Number(refreshToken.split('.')[2]);
}

/** What is wrong with how a lost answer is told. */
function misnamed({ name, problem }: ApplianceResponse): string[] {
  const told = /^An answer was lost on \d{4}-.*no longer accepts/.test(problem?.message ?? '');
  return told ? [] : [`${name} does not say that an answer was lost, but: ${problem?.message}`];
}

function named(portal: string, broken: readonly string[], figures: ExperimentResult['figures']): ExperimentResult {
  return { figures: prefixFigures(portal, figures), broken: broken.map((sentence) => `${portal}: ${sentence}`) };
}
