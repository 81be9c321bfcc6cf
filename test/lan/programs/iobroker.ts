import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { runCommand } from '../../project/checkout.ts';
import { eventually, reservePort } from '../../support/hub-process.ts';
import type { Kitchen } from './recipe-home.ts';

const ADAPTER = 'system.adapter.javascript.0';

/**
 * Starts ioBroker with its JavaScript adapter and one script. It has no web interface.
 * @param packages the folder in which npm has installed both
 * @param env what else is in its environment
 */
export async function startIobroker(
  kitchen: Kitchen,
  packages: string,
  script: string,
  env: NodeJS.ProcessEnv,
): Promise<AsyncDisposable> {
  const controller = join(packages, 'node_modules/iobroker.js-controller');
  // Otherwise it would report errors to its makers (CI), and give the file of Node.js capabilities (IOB_NO_SETCAP).
  const quiet = { IOBROKER_DATA_DIR: kitchen.folder, CI: 'true', IOB_NO_SETCAP: 'true' };
  const iobroker = async (...args: string[]) => {
    const command = [join(controller, 'iobroker.js'), ...args];
    const paths = { PATH: '/usr/bin:/bin', HOME: kitchen.folder };
    const { status, stdout, stderr } = await runCommand(process.execPath, command, { env: { ...paths, ...quiet } });
    if (status !== 0) throw new Error(`iobroker ${args.slice(0, 2).join(' ')}: ${stdout}${stderr}`);
  };
  const start = () => kitchen.spawn(process.execPath, [join(controller, 'controller.js')], { ...quiet, ...env });
  if (existsSync(join(kitchen.folder, 'iobroker.json'))) return start();

  const [objects, states] = [await reservePort(), await reservePort()];
  const database = (port: number) => ({ type: 'jsonl', host: '127.0.0.1', port, options: {} });
  const settings = { system: {}, objects: database(objects), states: database(states), log: { transport: {} } };
  await kitchen.write('iobroker.json', JSON.stringify(settings));
  // The milliseconds in which it looks for a controller; there is none yet.
  await iobroker('setup', 'first', '--timeout', '100');
  await using running = new AsyncDisposableStack();
  running.use(start());
  await eventually(() => connects(states));
  const type = { engine: ADAPTER, engineType: 'Javascript/js' };
  const object = { type: 'script', common: { name: 'heating', ...type, enabled: true, source: script }, native: {} };
  // If there is an equals sign in it, the command takes what is before for the name of a property.
  await iobroker('object', 'set', 'script.js.heating', JSON.stringify(object).replaceAll('=', '\\u003d'));
  await iobroker('add', 'javascript');
  // Otherwise the adapter would wait for the web interface.
  await iobroker('object', 'set', ADAPTER, 'common.globalDependencies=[]');
  return running.move();
}

/** Whether a server listens on a port of 127.0.0.1. */
function connects(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
