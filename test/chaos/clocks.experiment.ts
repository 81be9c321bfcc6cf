import { readFileSync } from 'node:fs';
import { pairFleet } from '../reliability/fleet.ts';
import { TokenLoad } from '../reliability/load.ts';
import { eventually, type HubProcess } from '../support/hub-process.ts';
import { ClockHarness, expectActive, expectClockUnknown, expectUnavailable, isSameToken } from './clock-harness.ts';
import {
  type Experiment,
  type ExperimentOptions,
  type ExperimentResult,
  InvariantChecks,
  mergeResults,
  SKIPPED,
} from './experiment.ts';
import { clocksSkipReason } from './fake-machine-clocks.ts';

const HOUR = 3_600_000;
const YEAR = 365.25 * 24 * HOUR;

export const experiment: Experiment = {
  name: 'Clocks',
  promise:
    'Whatever the wall clock does, while the hub runs or at a boot, no grant is lost and the hub issues no token that the portal would reject. A wrong clock is reported, and everything continues automatically when it is set.',
  async run(scale) {
    const reason = await clocksSkipReason();
    if (reason !== null) return { figures: { [SKIPPED]: reason }, broken: [] };
    const parts = [jumps, wrongAtBoot, in1970, suspended, ...(scale.long ? [elevenYearsAhead] : [])];
    // In parallel, because the parts mostly wait, each with its own hub.
    return mergeResults(await Promise.all(parts.map((part) => part(scale))));
  },
};

/** The wall clock jumps while the hub runs. This affects neither tokens nor pairings. */
async function jumps({ long, progress }: ExperimentOptions): Promise<ExperimentResult> {
  const lifetime = 6;
  const each = long ? 5 : 1;
  const all = [10 * YEAR, -10 * YEAR, 2 * HOUR, -2 * HOUR, -(Date.now() - 60_000), 70 * YEAR, 0];
  const to = long ? all : [10 * YEAR, -10 * YEAR, 0];
  await using site = await ClockHarness.start({ tokenLifetime: lifetime });
  const { hub, emulator, machine } = site;
  const names = ['wallbox', 'heater', 'inverter'];
  const fleet = await pairFleet(hub, emulator, names);
  await hub.addAppliance('open', 'Monitoring');
  const { pairing: open } = await hub.ask((control) => control.request('pair', { name: 'open' }));
  const promises = new InvariantChecks();
  const refreshes = () => emulator.grants().map(({ generation }) => generation - 1);
  const first = await expiresIn(hub, open);
  const refreshesBefore = refreshes();
  await using load = await TokenLoad.start(hub, emulator, fleet, long ? 400 : 1000);
  const noticed = () => readFileSync(hub.log, 'utf8').split('"clock_set"').length - 1;
  for (const [index, ahead] of to.entries()) {
    machine.setOffset(ahead);
    const before = refreshes();
    const continues = async () =>
      noticed() === index + 1 && refreshes().every((count, grant) => count >= (before[grant] ?? 0) + each);
    await eventually(continues, 3 * each * lifetime).catch(() => {
      const clock = new Date(machine.wall).toISOString();
      promises.expect(
        false,
        `with the clock at ${clock} the hub logged ${noticed()} jumps and made ${refreshes()} refreshes`,
      );
    });
    progress(`clock at ${new Date(machine.wall).toISOString()}: ${load.handOuts.length} tokens issued`);
  }
  await load[Symbol.asyncDispose]();
  const last = await expiresIn(hub, open);
  const seconds = (last.answered - first.asked) / 1000;
  const most = Math.ceil(seconds / (0.75 * lifetime)) + 1;
  promises.expect(load.refused.length === 0, `the hub issued ${load.refused.length} tokens that the portal rejected`);
  promises.expect(load.unfounded.length === 0, `${load.unfounded.length} requests got no token although there was one`);
  const made = refreshes().map((count, index) => count - (refreshesBefore[index] ?? 0));
  promises.expect(
    made.every((count) => count <= most),
    `the grants were refreshed ${made} times in ${seconds} s, which is more than their usual rate`,
  );
  // The remaining time must shrink by the time between the two readings: at least from the end of the first to the
  // begin of the second, and at most from the begin of the first to the end of the second, rounded to whole seconds.
  const [least, longest] = [last.asked - first.answered, last.answered - first.asked].map((ms) => ms / 1000);
  const passed = first.left - last.left;
  promises.expect(
    passed >= (least ?? 0) - 1 && passed <= (longest ?? 0) + 1,
    `${passed} s of a pairing's time passed in ${seconds} s`,
  );
  for (const name of names) await expectActive(hub, name, promises);
  return {
    figures: {
      'jumps while running': to.length,
      'tokens issued during jumps': load.handOuts.length,
      'of them rejected by the portal': load.refused.length,
    },
    broken: promises.broken,
  };
}

/** The machine boots with a plausible clock that is hours wrong. NTP or the portal provide the time later. */
async function wrongAtBoot({ progress }: ExperimentOptions): Promise<ExperimentResult> {
  await using site = await ClockHarness.start({ tokenLifetime: 3600 });
  const { hub, emulator, machine } = site;
  const promises = new InvariantChecks();
  const [wallbox, heater] = await pairFleet(hub, emulator, ['wallbox', 'heater']);
  if (wallbox === undefined || heater === undefined) throw new Error('nothing was paired');
  const before = await hub.requestToken(wallbox);
  const beforeOther = await hub.requestToken(heater);
  await hub.kill('SIGKILL');

  emulator.addFault({ kind: 'origin_down', origin: 'frontend' });
  await site.boot(-3 * HOUR);
  expectUnavailable(await hub.requestToken(wallbox), 'a token of unknown age', promises);
  machine.setOffset(0);
  await machine.synchronize();
  const byNtp = await site.served(wallbox, 15);
  promises.expect(
    isSameToken(byNtp.reply, before),
    'after the NTP synchronization another token was issued than the current one',
  );
  promises.expect(
    (await site.verdict(byNtp.reply)) === 200,
    'after the NTP synchronization a token was issued that the portal rejects',
  );
  progress(`NTP synchronization detected after ${byNtp.after} s`);
  await hub.kill('SIGKILL');
  await emulator.clearFaults();

  await site.boot(5 * HOUR);
  promises.expect(
    (await site.verdict(await hub.requestToken(heater))) === 200,
    'after a boot an expired token was issued',
  );
  const known = await hub.requestToken(wallbox);
  promises.expect(
    isSameToken(known, before),
    "a grant was refreshed although another grant's refresh had confirmed the time",
  );
  promises.expect(!isSameToken(await hub.requestToken(heater), beforeOther), 'a token of unknown age was issued');
  await hub.kill('SIGKILL');

  // By the machine's clock the tokens are valid, but they expired while it was off.
  emulator.advance(2 * 3600);
  emulator.addFault({ kind: 'status', endpoint: 'token', status: 503, times: null });
  await site.boot(0);
  for (const one of [wallbox, heater])
    expectUnavailable(await hub.requestToken(one), 'a token that expired while the hub was off', promises);
  await emulator.clearFaults();
  for (const one of [wallbox, heater]) {
    promises.expect((await site.verdict((await site.served(one, 30)).reply)) === 200, 'an expired token was issued');
  }
  return { figures: { 'NTP synchronization detected after, s': byNtp.after }, broken: promises.broken };
}

/** The machine boots in 1970, so that the portal's certificate is not valid yet by its clock. */
async function in1970({ progress }: ExperimentOptions): Promise<ExperimentResult> {
  await using site = await ClockHarness.start({ tls: true, tokenLifetime: 60 });
  const { hub, emulator, machine } = site;
  const promises = new InvariantChecks();
  const [wallbox] = await pairFleet(hub, emulator, ['wallbox']);
  if (wallbox === undefined) throw new Error('nothing was paired');
  await hub.addAppliance('heater', 'Monitoring');
  await hub.kill('SIGTERM');

  await site.boot(30_000 - Date.now());
  expectUnavailable(await hub.requestToken(wallbox), 'in 1970', promises);
  const status = await hub.appliance('wallbox');
  expectClockUnknown(status, ['says 1970-01-01T00:0', 'nothing has confirmed it', 'not valid yet'], promises);
  const logged = async () => /"problem":"clock_unknown".*1970-01-01.*not valid yet/.test(readFileSync(hub.log, 'utf8'));
  promises.expect(await eventually(logged).catch(() => false), 'the log does not report the wrong clock');
  const pairing = await hub.cli('pair', 'heater', '--no-wait');
  promises.expect(
    pairing.status === 1 && pairing.stderr.includes('clock says 1970-01-01T00:0'),
    `pair did not report the wrong clock: ${pairing.stderr}`,
  );

  machine.setOffset(0);
  const { reply, after } = await site.served(wallbox, 20);
  progress(`in 1970: ${after} s after the clock was set the hub issued a token`);
  promises.expect((await site.verdict(reply)) === 200, 'after 1970 an expired token was issued');
  const linked = await hub.until('heater', ({ authorize_url }) => authorize_url !== undefined, 20).catch(() => null);
  promises.expect(linked !== null, 'the pairing that began in 1970 did not continue');
  await expectActive(hub, 'wallbox', promises);
  promises.expect(emulator.observations.refreshTokensRepeated === 0, 'a refresh token was sent twice');
  return { figures: { 'from 1970: token issued after the clock was set, s': after }, broken: promises.broken };
}

/** The machine is suspended for five hours. */
async function suspended({ long, progress }: ExperimentOptions): Promise<ExperimentResult> {
  await using site = await ClockHarness.start({ tokenLifetime: 3600 });
  const { hub, emulator, machine } = site;
  const promises = new InvariantChecks();
  const [wallbox] = await pairFleet(hub, emulator, ['wallbox', 'heater']);
  if (wallbox === undefined) throw new Error('nothing was paired');
  const asleep = 5 * HOUR;
  machine.suspend(asleep);
  emulator.advance(asleep / 1000);
  const reply = await hub.requestToken(wallbox);
  promises.expect(
    reply.status === 200 && (await site.verdict(reply)) === 200,
    'on resuming an expired token was issued, or none',
  );
  if (!long) return { figures: {}, broken: promises.broken };
  // Timers run for at most a minute; by then the hub detects the suspension without a request.
  const resumed = performance.now();
  await eventually(async () => emulator.grants().every(({ generation }) => generation === 2), 75).catch(() => {
    promises.expect(false, 'a minute after resuming not every grant was fresh');
  });
  const after = Math.round((performance.now() - resumed) / 1000);
  progress(`${after} s after resuming every grant is fresh`);
  return { figures: { 'after a suspension: all fresh within, s': after }, broken: promises.broken };
}

/** The clock jumps beyond the end of the portal's certificate: no refresh until the clock is set again. */
async function elevenYearsAhead({ progress }: ExperimentOptions): Promise<ExperimentResult> {
  await using site = await ClockHarness.start({ tls: true, tokenLifetime: 20 });
  const { hub, emulator, machine } = site;
  const promises = new InvariantChecks();
  const [wallbox] = await pairFleet(hub, emulator, ['wallbox']);
  if (wallbox === undefined) throw new Error('nothing was paired');
  machine.setOffset(11 * YEAR);
  const reply = await hub.requestToken(wallbox);
  promises.expect((await site.verdict(reply)) === 200, 'the current token was not issued any more');
  const status = await hub.until('wallbox', ({ problem, expires_in }) => problem !== null && expires_in === 0, 40);
  expectClockUnknown(status, ['but it is ', 'has expired'], promises);
  expectUnavailable(await hub.requestToken(wallbox), 'eleven years ahead', promises);
  machine.setOffset(0);
  const { after } = await site.served(wallbox, 20);
  progress(`back from +11 years: ${after} s after the clock was set the hub issued a token`);
  await expectActive(hub, 'wallbox', promises);
  return { figures: { 'back from +11 years: token issued after, s': after }, broken: promises.broken };
}

/**
 * The remaining time of a pairing with a link, in s, and the times of the request and the response, in ms since 1970.
 */
async function expiresIn(hub: HubProcess, pairing: string) {
  const stop = new AbortController();
  const asked = Date.now();
  return hub.ask(async (control) => {
    for await (const report of control.followPairing(pairing, stop.signal)) {
      if (report.event === 'waiting') return { left: report.expires_in, asked, answered: Date.now() };
    }
    throw new Error('the pairing has ended');
  });
}
