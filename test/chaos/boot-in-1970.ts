import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import type { ApplianceAnswer } from '../../src/control/messages.ts';
import { pairFleet } from '../reliability/fleet.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import type { Finding, Scale } from './experiment.ts';
import { VirtualMachine, whyNoMachine } from './virtual-machine.ts';

/** A machine without a clock of its own boots in 1970, with a hub on it that has a grant; its clock is set later. */
export async function bootIn1970({ progress }: Scale): Promise<Finding> {
  const reason = await whyNoMachine();
  if (reason !== null) return { figures: { 'a real boot in 1970: left out': reason }, broken: [] };
  const broken: string[] = [];
  await using emulator = await startPortal({ tls: true, tokenLifetime: 60 });
  await using hub = await HubProcess.prepare({ emulator, portal: 'ca_file = "portal-ca.pem"' });
  await writeFile(join(hub.directory, 'portal-ca.pem'), emulator.ca ?? '');
  await hub.launch();
  await pairFleet(hub, emulator, ['wallbox']);
  await hub.kill('SIGTERM');

  const began = performance.now();
  const ports = [emulator.baseUrl, emulator.frontendUrl].map((url) => new URL(url).port);
  await using machine = await VirtualMachine.boot(60_000, hub.directory, ports);
  const config = `--config ${hub.directory}/latchkey.toml`;
  const logged = async (words: string, seconds: number) => {
    await eventually(async () => (await machine.run(`grep -q '${words}' /tmp/hub.log`)).status === 0, seconds);
  };
  await machine.run(`node /app/dist/main.js serve ${config} 2>/tmp/hub.log &`);
  await logged('"hub started"', 60);
  progress(`a hub runs in ${(await machine.run('date')).output.trim()}`);

  const early = await machine.latchkey(`token wallbox --json ${config}`);
  if (early.status !== 1) broken.push(`in 1970, booted for real, a token was handed out (${early.status})`);
  const { problem } = await statusOf(machine, config);
  const named = problem?.code === 'clock_unknown' && /says 1970-01-01T00:0.*not valid yet/.test(problem.message);
  if (!named) broken.push(`booted in 1970, status said ${problem?.code}: ${problem?.message}`);

  await machine.run(`date -s @${Math.round(Date.now() / 1000)}`);
  const set = performance.now();
  await logged('"refreshed"', 60).catch(() =>
    broken.push('booted in 1970, the hub did not go on when the clock was set'),
  );
  const after = Math.round((performance.now() - set) / 1000);
  const { output } = await machine.latchkey(`token wallbox --json ${config}`);
  const token = (JSON.parse(output) as { access_token: string }).access_token;
  rememberSecrets([token]);
  const dispatcher = new Agent({ connect: { ca: emulator.ca ?? '' } });
  const headers = { authorization: `Bearer ${token}` };
  const { statusCode, body } = await request(`${emulator.baseUrl}/api/whoami`, { headers, dispatcher });
  await body.dump();
  await dispatcher.destroy();
  if (statusCode !== 200)
    broken.push('booted in 1970 and the clock set, a token was handed out that the portal refuses');
  if (emulator.grants()[0]?.revoked !== false) broken.push('booted in 1970, the grant was lost');
  const { state } = await statusOf(machine, config);
  if (state !== 'active') broken.push(`booted in 1970 and the clock set, the appliance is ${state}`);
  const took = Math.round((performance.now() - began) / 1000);
  progress(`booted in 1970: refreshed ${after} s after the clock was set; all of it took ${took} s`);
  return { figures: { 'booted in 1970: refreshed after the clock was set, s': after }, broken };
}

async function statusOf(machine: VirtualMachine, config: string): Promise<ApplianceAnswer> {
  const { output } = await machine.latchkey(`status --json ${config}`);
  const { appliances } = JSON.parse(output) as { appliances: ApplianceAnswer[] };
  const [found] = appliances;
  if (found === undefined) throw new Error('the machine has lost its appliance');
  return found;
}
