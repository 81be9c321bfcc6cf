import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { env, known } from './program.mjs';

if (!env.OAUTH_ISSUER) process.exit(1);
const folder = `${env.STATE_DIR}/oidc-agent`;
const [socket, password] = [`${folder}/socket`, `${folder}/password`];
const options = { env: { ...env, OIDC_CONFIG_DIR: folder, OIDC_SOCK: socket } };
const askForToken = async (...more) =>
  (await promisify(execFile)('/usr/bin/oidc-token', [...more, 'exam'], options)).stdout.trim();
const pause = () => new Promise((resolve) => setTimeout(resolve, 1000));

mkdirSync(folder, { recursive: true, mode: 0o700 });
// A second program with this folder uses the agent that runs.
if ((await askForToken().catch(() => null)) === null) {
  rmSync(socket, { force: true });
  const agent = spawn('/usr/bin/oidc-agent', ['--console', '--quiet', `--socket-path=${socket}`], {
    ...options,
    stdio: 'inherit',
  });
  agent.on('exit', (status) => process.exit(status ?? 1));
  process.on('SIGTERM', () => agent.kill());
  while (!existsSync(socket)) await pause();
  const isNew = !existsSync(`${folder}/exam`);
  if (isNew) writeFileSync(password, 'a password', { mode: 0o600 });
  const flow = env.OAUTH_REFRESH_TOKEN
    ? ['--rt-env=OAUTH_REFRESH_TOKEN']
    : [`--flow=${env.OAUTH_AUTHORIZATION_ENDPOINT ? 'code' : 'device'}`];
  const registration = [
    ...['--prompt=none', '--confirm-default', '--no-url-call', '--no-scheme', `--iss=${env.OAUTH_ISSUER}`],
    ...[`--client-id=${known.id}`, `--client-secret=${known.secret}`, `--redirect-uri=${known.redirectUri}`],
    ...['--scope=openid', ...flow],
  ];
  const [program, more] = isNew ? ['oidc-gen', registration] : ['oidc-add', []];
  const login = spawn(`/usr/bin/${program}`, [`--pw-file=${password}`, ...more, 'exam'], {
    ...options,
    stdio: 'inherit',
  });
  const [status] = await once(login, 'exit');
  if (status !== 0) process.exit(status ?? 1);
}

for (let isRefused = false; ; await pause()) {
  try {
    const token = await askForToken(...(isRefused ? ['--force-new'] : []));
    const { status } = await fetch(env.API_URL, { headers: { authorization: `Bearer ${token}` } });
    isRefused = status === 401;
  } catch (error) {
    console.error(error.message);
    if (error.message.includes('invalid_grant')) process.exit(1);
  }
}
