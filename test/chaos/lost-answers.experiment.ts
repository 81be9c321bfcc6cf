import { setTimeout as sleep } from 'node:timers/promises';
import type { ApplianceResponse } from '../../src/control/messages.ts';
import { messageOf } from '../../src/core/failure.ts';
import type { LostAnswerRetry } from '../../src/core/grants/login-end.ts';
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

/**
 * The interval of an appliance's token requests, in ms; the short one shows when a token is issued for the last time.
 */
const REQUEST_INTERVAL = 2000;
const SHORT_REQUEST_INTERVAL = 300;

export const experiment: Experiment = {
  name: 'Lost answers',
  promise:
    'If the answer to every third refresh is lost after the portal has acted on it, no grant is lost at a portal with a grace time, no token family is revoked while its access token is valid, and each loss is reported.',
  async run(scale) {
    return mergeResults(await Promise.all([graceTime(scale), revokedFamilies(scale), refusals(scale)]));
  },
};

/** A portal that repeats the same response for 10 s, and `early`: nothing is lost. */
async function graceTime(scale: ExperimentOptions): Promise<ExperimentResult> {
  const [wanted, lifetime] = scale.long ? [200, 12] : [4, 6];
  const flags = ['--token-lifetime', `${lifetime}s`, '--refresh-grace-time', '10s', '--content-encoding', 'gzip'];
  const names = namesOf(scale, 4);
  await using home = await ChaosHarness.startWithSeparateClients(new Map(names.map((name) => [name, 'early'])), flags);
  const broken: string[] = [];
  const fleet = await home.pairAppliances(names);
  const load = await TokenLoad.start(home.hub, home.portal, fleet, REQUEST_INTERVAL);
  await loseEveryThird(home, names, 2);
  const imports = { begun: 0, lost: 0 };
  for (let lost = 0; (lost < wanted || imports.lost === 0) && !scale.signal.aborted; ) {
    if (imports.begun < wanted / 4 || imports.lost === 0) {
      // On a quiet machine the answer to the first one is lost. Repeated, an import gets the tokens that were lost.
      const name = names[imports.begun % names.length] ?? '';
      const token = await home.logInElsewhere(name);
      imports.begun += 1;
      const isDone = await isImported(home, name, token);
      if (!isDone) imports.lost += 1;
      if (!isDone && !(await isImported(home, name, token))) broken.push(`a repeated import over ${name} has failed`);
      else if ((await home.grantInUse(name)) !== token.split('.')[0]) broken.push(`${name} has no imported grant`);
    }
    await sleep(1000);
    const before = lost;
    lost = (await losses(home)).length;
    if (lost !== before) scale.progress(`grace time: ${lost} lost answers`);
    for (const { name, state, problem } of await home.statuses()) {
      if (state === 'needs_pairing' || state === 'unpaired') broken.push(`${name} is ${state}: ${problem?.message}`);
    }
    if (broken.length > 0) break;
  }
  const lost = await losses(home);
  await home.portal.ask('DELETE', '/_emulator/faults');
  for (const name of names) {
    await home.hub
      .until(name, ({ state }) => state === 'active', 30)
      .then(() => home.hub.ask((control) => control.request('refresh', { name })))
      .catch((error: unknown) => broken.push(`${name} did not recover: ${messageOf(error)}`));
  }
  await load[Symbol.asyncDispose]();
  if (load.refused.length > 0) broken.push(`the hub issued ${load.refused.length} tokens that the portal rejected`);
  return resultOf(home, 'grace time, early', broken, {
    'lost answers': lost.length,
    'lost answers of an oauth2 portal': lost.filter(({ oauth2 }) => oauth2).length,
    'imports over a grant': imports.begun,
    'of them with a lost answer': imports.lost,
    'grants lost': (await home.statuses()).filter(({ state }) => state !== 'active').length,
    'tokens issued': load.handOuts.length,
    'requests deferred (503)': load.refusals.length,
  });
}

/**
 * A portal that revokes the token family on reuse, and `late`: the old refresh token is used only after the access
 * token has expired.
 */
async function revokedFamilies(scale: ExperimentOptions): Promise<ExperimentResult> {
  const [wanted, lifetime] = scale.long ? [100, 20] : [4, 12];
  const flags = ['--token-lifetime', `${lifetime}s`, '--on-reuse', 'revoke-family', '--content-encoding', 'deflate'];
  const names = namesOf(scale, 4);
  await using home = await ChaosHarness.startWithSeparateClients(new Map(names.map((name) => [name, 'late'])), flags);
  const broken: string[] = [];
  const fleet = await home.pairAppliances(names);
  const load = await TokenLoad.start(home.hub, home.portal, fleet, REQUEST_INTERVAL);
  // The first loss occurs when the token has nearly all of its lifetime left.
  await loseEveryThird(home, names, 3);
  let needed = 0;
  while (needed < wanted && !scale.signal.aborted) {
    await sleep(500);
    for (const status of (await home.statuses()).filter(({ state }) => state === 'needs_pairing')) {
      needed += 1;
      broken.push(...wrongReport(status));
      await home.pair(status.name);
      scale.progress(`revoke-family: ${needed} families revoked`);
    }
  }
  await load[Symbol.asyncDispose]();
  const sends = await home.sends('refresh_token');
  const refused = sends.filter(({ status }) => status === 400);
  // By the lifetime that the hub reported: on a busy machine it ends before the token expires at the portal.
  const early = refused.filter(({ grant, token, at }) =>
    load.handOuts.some((one) => one.grant === grant && one.issuedAt === issuedAt(token) && at < tokenExpiry(one)),
  );
  if (early.length > 0) broken.push(`${early.length} families were revoked while their access token was valid`);
  if (load.refused.length > 0) broken.push(`the hub issued ${load.refused.length} tokens that the portal rejected`);
  const lost = await losses(home);
  return resultOf(home, 'revoke-family, late', broken, {
    'lost answers': lost.length,
    'lost answers of an oauth2 portal': lost.filter(({ oauth2 }) => oauth2).length,
    'families revoked': (await home.grants()).filter(({ revoked }) => revoked).length,
    'of them while the access token was valid': early.length,
    'tokens issued': load.handOuts.length,
  });
}

/**
 * A portal that refuses reuse, both modes: the grant is lost, and the current access token is issued up to its last
 * second. If the answer to an import over a grant is lost, that grant goes on.
 */
async function refusals(scale: ExperimentOptions): Promise<ExperimentResult> {
  const names = namesOf(scale, 4);
  const modes = new Map(
    names.map((name, index): [string, LostAnswerRetry] => [name, index % 2 === 0 ? 'early' : 'late']),
  );
  for (const mode of ['early', 'late'] as const) modes.set(`imported-${mode}`, mode);
  const imported = [...modes.keys()].slice(names.length);
  const lifetime = scale.long ? 30 : 10;
  await using home = await ChaosHarness.startWithSeparateClients(modes, [
    '--token-lifetime',
    `${lifetime}s`,
    '--content-encoding',
    'br',
  ]);
  const broken: string[] = [];
  const fleet = await home.pairAppliances(names);
  for (const name of names) await home.portal.addFault({ ...LOSS, client: home.clientOf(name), times: 1 });
  const load = await TokenLoad.start(home.hub, home.portal, fleet, SHORT_REQUEST_INTERVAL);
  await Promise.all(names.map((name) => home.hub.ask((control) => control.request('refresh', { name }))));
  for (const name of imported) broken.push(...(await loseImport(home, name)));
  for (const name of names) {
    const status = await home.hub.until(name, ({ state }) => state === 'needs_pairing', 15).catch(() => null);
    if (status === null) broken.push(`${name} does not need pairing`);
    else broken.push(...wrongReport(status));
  }
  const refusedAll = async () => names.every((name) => load.refusals.some(({ appliance }) => appliance === name));
  await eventually(refusedAll, 2 * lifetime).catch(() => broken.push('an access token is issued after its end'));
  await load[Symbol.asyncDispose]();
  for (const { appliance, status } of load.unfounded)
    broken.push(`${appliance} got no token (HTTP ${status}) although one was valid`);
  if (load.refused.length > 0) broken.push(`the hub issued ${load.refused.length} tokens that the portal rejected`);
  const lost = (await home.statuses()).filter(({ state }) => state === 'needs_pairing');
  return resultOf(home, 'reuse refused, both modes', broken, {
    'grants lost, each reported as a lost answer': lost.length,
    'grants lost at an oauth2 portal': lost.filter(({ name }) => home.usesOAuth2(name)).length,
    'imports with a lost answer, the former grant goes on': imported.length,
    'shortest remaining lifetime of an issued token, s': Math.min(...load.handOuts.map(({ expiresIn }) => expiresIn)),
    'tokens issued': load.handOuts.length,
  });
}

/** The names of the appliances, twenty in the long form. @param few their number in the short form */
function namesOf({ long }: ExperimentOptions, few: number): string[] {
  return Array.from({ length: long ? 20 : few }, (_, index) => `appliance-${index + 1}`);
}

const LOSS = { kind: 'commit_then_drop', endpoint: 'token', grant_type: 'refresh_token' };

/**
 * Makes the portal lose the answer to every third refresh of each grant from now on.
 * @param refreshes the number of forced refreshes, one after another. There is none after a lost answer, because the
 * hub would
 *   then retry at once. On a busy machine the hub's own refreshes occur between them.
 */
async function loseEveryThird(home: ChaosHarness, names: readonly string[], refreshes: number): Promise<void> {
  for (const name of names) await home.portal.addFault({ ...LOSS, client: home.clientOf(name), every: 3, times: null });
  for (const name of names) {
    for (let count = 0; count < refreshes && (await home.hub.appliance(name)).problem === null; count++) {
      await home.hub.ask((control) => control.request('refresh', { name }));
    }
  }
}

/**
 * Imports over the grant of a new connection, and the answer is lost.
 * @returns what is wrong; nothing if the former grant goes on
 */
async function loseImport(home: ChaosHarness, name: string): Promise<string[]> {
  const token = await home.logInElsewhere(name);
  await home.addAppliance(name);
  // From here on the access token is new, so that the hub sends no refresh of its own.
  await home.pair(name);
  const former = await home.grantInUse(name);
  await home.portal.addFault({ ...LOSS, client: home.clientOf(name), times: 1 });
  if (await isImported(home, name, token)) return [`the answer to the import over ${name} was not lost`];
  const { state, problem } = await home.hub.until(name, (status) => status.state !== 'retrying', 15);
  if (state !== 'active') return [`${name} has lost its grant by an import: ${problem?.message}`];
  return (await home.grantInUse(name)) === former ? [] : [`${name} has another grant than before`];
}

/** Imports a refresh token over the grant of a connection. @returns false if the answer was lost */
async function isImported(home: ChaosHarness, name: string, token: string): Promise<boolean> {
  return home.importOver(name, token).then(
    () => true,
    (error: unknown) => {
      if (/answer was lost/.test(messageOf(error))) return false;
      throw error;
    },
  );
}

/** The refreshes whose answer was lost. */
async function losses(home: ChaosHarness): Promise<readonly SentCredential[]> {
  return (await home.sends('refresh_token')).filter(({ status, successor }) => status === null && successor !== null);
}

/**
 * When a refresh token and its access token were issued, in ms since 1970. The emulator's tokens contain it in clear
 * text.
 */
function issuedAt(refreshToken: string): number {
  return Number(refreshToken.split('.')[2]);
}

/** What is wrong with the report of a lost answer. */
function wrongReport({ name, problem }: Pick<ApplianceResponse, 'name' | 'problem'>): string[] {
  const reported = /^An answer was lost on \d{4}-.*no longer accepts/.test(problem?.message ?? '');
  return reported ? [] : [`${name} does not report a lost answer, but: ${problem?.message}`];
}

async function resultOf(
  home: ChaosHarness,
  portal: string,
  broken: readonly string[],
  figures: ExperimentResult['figures'],
): Promise<ExperimentResult> {
  const compressed = (await home.sends('refresh_token')).filter(({ status }) => status !== null);
  return {
    figures: prefixFigures(portal, { ...figures, 'refreshes with a compressed answer': compressed.length }),
    broken: broken.map((sentence) => `${portal}: ${sentence}`),
  };
}
