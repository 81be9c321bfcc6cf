// Runs every shell command (```sh) of docs/site.md in order, on the machines that it describes.
import { describe, expect, it } from 'vitest';
import { scaleDeadline } from '../../support/deadlines.ts';
import { eventually } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { IS_LONG_FORM } from '../../support/long.ts';
import { machineSkipReason } from '../../support/machine.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { buildPackage, LATER } from '../machine/packages.ts';
import { readPage, shellBlocks } from './documented-commands.ts';
import { DATABASE_PACKAGES, type DebianRelease, type MachineName, SiteMachines } from './site-machines.ts';

const GUIDE = readPage('site.md');

const HUBS = ['cellar', 'attic'] as const;

/** The releases of Debian that docs/site.md is for: the machines of the second one are booted in the long form only. */
const RELEASES: readonly DebianRelease[] = [
  { debian: 'Debian 12', suite: 'bookworm', postgresql: 15 },
  ...(IS_LONG_FORM ? [{ debian: 'Debian 13', suite: 'trixie', postgresql: 17 } as const] : []),
];

describe.each(RELEASES)('a site on machines with $debian', (release) => {
  const postgresql = `postgresql@${release.postgresql}-main`;
  let site: SiteMachines;
  let packages: { readonly own: string; readonly later: string };
  /** What the steps show, and a person copies to the next machine. */
  const shown = { ca: '', url: '', storeKey: '', variables: '', standbyFiles: '', replicatorPassword: '' };

  setUpOnce(
    async (parts) => {
      packages = { own: (await buildPackage()).path, later: (await buildPackage(LATER)).path };
      site = parts.use(await SiteMachines.boot(release));
      await Promise.all(
        HUBS.map(async (hub) => {
          await site.providePackage(hub, packages.own);
          await site.type(hub, 'sudo apt-get install ./latchkey_*.deb');
        }),
      );
    },
    {
      skipReason: async () =>
        (await machineSkipReason(['/usr/bin/curl'], { suite: release.suite })) ??
        machineSkipReason([], { suite: release.suite, packages: DATABASE_PACKAGES }),
      timeout: scaleDeadline(180_000),
    },
  );

  /** Creates a password, and a user who has it. @returns the password */
  async function createUser([random, create]: readonly (string | undefined)[]): Promise<string> {
    const password = await site.type('database', random);
    rememberSecrets([password]);
    await site.type('database', create, `${password}\n${password}\n`);
    return password;
  }

  /** The state of the appliance at a hub. */
  async function stateAt(hub: MachineName): Promise<string | undefined> {
    return (await site.status(hub)).appliances[0]?.state;
  }

  describe('the commands of docs/site.md', () => {
    it('the commands of docs/site.md set up a database and two hubs that list each other', async () => {
      const [install, certificates, network, user, database, show] = blocks('The database', 6);
      await site.type('database', install);
      await site.type('database', certificates);
      await site.type('database', network);
      const password = await createUser((user ?? '').trim().split('\n'));
      await site.type('database', database);
      shown.ca = await site.type('database', show);
      shown.url = site.localize(example('text', 'postgresql://').trim()).replace('PASSWORD', password);

      const toml = example('toml', 'postgres_file');
      const [stop, ca, url, key, check, start] = blocks('The first hub', 6);
      await site.type('cellar', stop);
      await site.configure('cellar', toml);
      await site.type('cellar', ca, `${shown.ca}\n`);
      await site.type('cellar', url, `${shown.url}\n`);
      shown.storeKey = await site.type('cellar', key);
      rememberSecrets([shown.storeKey]);
      const checks = site.document(await site.type('cellar', check)).replace(/PostgreSQL [\d.]+/, 'PostgreSQL 15.18');
      expect(`${checks}\n`).toBe(example('text', 'database.rights'));
      await site.type('cellar', start);

      const [paste, second] = blocks('The second hub, and each further one', 2);
      await site.type('attic', stop);
      await site.configure('attic', toml.replace('Cellar', 'Attic'));
      await site.type('attic', ca, `${shown.ca}\n`);
      await site.type('attic', url, `${shown.url}\n`);
      await site.type('attic', paste, `${shown.storeKey}\n`);
      const status = site.document(await site.type('attic', second));
      expect(shape(status)).toEqual(shape(example('text', 'Hubs of the site')));
      await eventually(async () => (await site.status('cellar')).site?.hubs.length === 2);
    });

    it('an appliance that is paired at one hub gets its token from the other, which avahi finds too', async () => {
      const [add = '', token, browse] = blocks('An appliance', 3);
      const [register, pair] = add.trim().split('\n');
      const [, variables = ''] = /^ *export (.*)$/m.exec(await site.type('cellar', register)) ?? [];
      rememberSecrets([/CLIENT_SECRET=(\S+)/.exec(variables)?.[1] ?? '']);
      shown.variables = variables;
      const paired = site.type('cellar', pair);
      const link = await eventually(async () => (await site.status('cellar')).appliances[0]?.authorize_url);
      const state = new URL(String(link)).searchParams.get('state');
      await site.portal.sendCommand('POST', 'login', { state, user: 'demo' });
      await paired;
      expect(JSON.parse(await site.typeElsewhere(variables, token))).toMatchObject({ token_type: 'Bearer' });

      const { site: listed, hub } = await site.status('attic');
      const found = (await site.type('database', browse)).split('\n').filter((line) => /^=;[^;]*;IPv4;/.test(line));
      expect(found).toHaveLength(2);
      for (const line of found) expect(line).toMatch(new RegExp(`"site=${listed?.id}".*"capk=${hub.ca_fingerprint}"`));
      for (const { id } of listed?.hubs ?? []) expect(found.join()).toContain(`"id=${id}"`);
    });

    it('the commands of docs/site.md back the site up, and update one hub after the other', async () => {
      const [backup, dump, restore] = blocks('Backup', 3);
      await site.type('cellar', backup);
      await site.type('database', dump);
      const both = (command: string) => Promise.all(HUBS.map((hub) => site.machines[hub].sh(command)));
      await both('systemctl stop latchkey');
      await site.type('database', restore);
      await both('systemctl start latchkey');
      await eventually(async () => (await site.status('attic')).connections[0]?.problem === null, 30);
      const [update] = blocks('Updating', 1);
      for (const hub of HUBS) {
        await site.providePackage(hub, packages.later);
        expect(await site.type(hub, update)).toMatch(/this hub/);
        await eventually(async () => (await stateAt('attic')) === 'active', 15, 500);
      }
      const { site: listed } = await site.status('attic');
      expect(listed?.hubs.map(({ version }) => version)).toEqual([LATER, LATER]);
    });

    it('the commands of docs/site.md set up a synchronous standby, for which commits wait', async () => {
      const [user = '', install = '', split, copy, wait, alone] = blocks('A standby for the database', 8);
      const [create, ...more] = user.trim().split('\n');
      shown.replicatorPassword = await createUser(['openssl rand -hex 24', create]);
      shown.standbyFiles = await site.type('database', more.join('\n'));
      rememberSecrets((shown.standbyFiles.split('PRIVATE KEY-----')[1] ?? '').split('\n').slice(1, -1));
      const [postgres, paste] = install.trim().split('\n');
      await site.type('standby', postgres);
      await site.type('standby', paste, `${shown.standbyFiles}\n`);
      await site.type('standby', split);
      await site.type('standby', copy, `${shown.replicatorPassword}\n`);
      const replication = site.document(await site.type('database', wait));
      expect(replication).toMatch(/192\.168\.1\.13 *\| streaming \| sync/);
      const doctor = 'latchkey doctor | grep database.commits';
      expect(await site.type('attic', doctor)).toContain('commits are on the disk of the server and of a standby');

      await site.machines.standby.sh(`systemctl stop ${postgresql}`);
      await eventually(
        async () => (await site.machines.attic.run('latchkey status')).stdout.includes('Query read timeout'),
        30,
        1000,
      );
      await site.type('database', alone);
      await site.untilRefreshed('attic', 30);
      await site.machines.standby.sh(`systemctl start ${postgresql}`);
      await site.type('database', wait);
    });

    it('a hub whose neighbour has lost its power issues the token at the next request', async () => {
      const [, token] = blocks('An appliance', 3);
      await site.cutPower('cellar');
      expect(JSON.parse(await site.typeElsewhere(shown.variables, token))).toMatchObject({ token_type: 'Bearer' });
      const [password] = blocks('If a hub fails', 1);
      const same = `${/latchkey:([^@]+)@/.exec(shown.url)?.[1]}\n`;
      await site.type('database', password, same + same);
      const remove = example('text', 'site remove');
      await eventually(async () => (await site.machines.attic.run(remove)).status === 0, 30, 1000);
      expect((await site.status('attic')).site?.hubs.map(({ name }) => name)).toEqual(['Attic hub']);
    });

    it('the standby takes over from a database that has lost its power, and the hub refreshes there', async () => {
      const promote = blocks('A standby for the database', 8)[6];
      const { connections } = await site.status('attic');
      await site.hosts.database.plug('down');
      await site.machines.database.sh(`systemctl kill --signal=KILL ${postgresql}`);
      await eventually(
        async () => (await site.machines.attic.run('latchkey status')).stdout.includes("can't be used since"),
        30,
        1000,
      );
      await site.type('standby', promote);
      await site.untilRefreshed('attic', 60);
      const after = (await site.status('attic')).connections;
      expect(after.map(({ state, problem }) => ({ state, problem }))).toEqual([{ state: 'active', problem: null }]);
      expect(after[0]?.last_refresh).not.toBe(connections[0]?.last_refresh);
    });

    it('the commands of docs/site.md make the repaired machine the new standby', async () => {
      const [, install = '', split, copy, wait, , , stop] = blocks('A standby for the database', 8);
      // As after a boot, with the cable unplugged.
      await site.machines.database.sh(`systemctl start ${postgresql}`);
      await site.type('database', stop);
      await site.moveAddress('standby', 'database');
      await site.hosts.database.plug('up');
      const [postgres, paste] = install.trim().split('\n');
      await site.type('database', postgres);
      await site.type('database', paste, `${shown.standbyFiles}\n`);
      await site.type('database', split);
      await site.type('database', copy, `${shown.replicatorPassword}\n`);
      expect(site.document(await site.type('standby', wait))).toMatch(/192\.168\.1\.13 *\| streaming \| sync/);
      await site.untilRefreshed('attic', 60);
    });
  });

  describe('the messages of docs/site.md', () => {
    const credentials = '/etc/latchkey/credentials';
    const inUrl = (change: string) => `sed -i '${change}' ${credentials}/postgres.url`;
    /** A shell command on the hub, which makes the documented mistake. */
    const mistakes: readonly string[] = [
      inUrl('s/latchkey:[^@]*@/latchkey:wrong@/'),
      inUrl('s/latchkey:/latchky:/'),
      inUrl('s/&sslrootcert.*//'),
      `echo "$(sed -n 's/.*@\\([0-9.]*\\).*/\\1/p' ${credentials}/postgres.url) database" >>/etc/hosts; ${inUrl('s/@[0-9.]*/@database/')}`,
      'rm /etc/latchkey/database-ca.pem',
      inUrl('s/?.*//'),
      inUrl('s/latchkey:/latchkey:a@b/'),
      `rm ${credentials}/postgres.url`,
      `echo hello >>${credentials}/postgres.url`,
      `rm ${credentials}/store.key`,
      `openssl rand 32 | basenc --base64url | tr -d = >${credentials}/store.key`,
      `echo short >${credentials}/store.key`,
    ];
    /** SQL on the database's machine, before and after. */
    const otherDatabases: readonly (readonly [before: string, after: string])[] = [
      [
        'ALTER DATABASE latchkey OWNER TO postgres; ALTER SCHEMA latchkey RENAME TO away',
        'ALTER SCHEMA away RENAME TO latchkey; ALTER DATABASE latchkey OWNER TO latchkey',
      ],
      [
        'ALTER SCHEMA latchkey RENAME TO away; CREATE SCHEMA latchkey AUTHORIZATION latchkey; CREATE TABLE latchkey.other ()',
        'DROP SCHEMA latchkey CASCADE; ALTER SCHEMA away RENAME TO latchkey',
      ],
      [
        'ALTER SYSTEM SET ssl = off; SELECT pg_reload_conf(), pg_sleep(0.5)',
        'ALTER SYSTEM RESET ssl; SELECT pg_reload_conf(), pg_sleep(0.5)',
      ],
      ['UPDATE latchkey.schema SET version = 2', 'UPDATE latchkey.schema SET version = 1'],
    ];
    /** Tested in test/release/site/opening.test.ts: a copied hub-id takes a minute to be noticed, and there is no such server here. */
    const SEEN_ELSEWHERE = /^(another hub uses|the server of the site's database is|unsupported startup parameter)/;

    it('the messages of docs/site.md are those that a hub reports after these mistakes', async () => {
      const { attic, standby } = site.machines;
      const documented = messages(1).filter((message) => !SEEN_ELSEWHERE.test(message));
      await attic.sh('cp -a /etc/latchkey /root/good');
      const seen = new Set<string>();
      const start = async (mistake: string) => {
        await attic.sh(`systemctl stop latchkey; ${mistake}`);
        expect((await attic.run('systemctl start latchkey')).status, mistake).toBe(1);
        const lines = site.document((await attic.journal('latchkey', '--lines=20')).join('\n'));
        const [last = ''] = lines
          .split('\n')
          .filter((line) => line.startsWith('latchkey: '))
          .slice(-1);
        const found = documented.filter((message) => last.includes(message));
        expect(found, `${mistake}: ${last}`).toHaveLength(1);
        seen.add(found.join());
        await attic.sh('rm -rf /etc/latchkey; cp -a /root/good /etc/latchkey; systemctl reset-failed latchkey');
      };
      for (const mistake of mistakes) await start(mistake);
      const sql = (statements: string) =>
        standby.sh('cd /; runuser -u postgres -- psql --quiet latchkey', { input: statements });
      for (const [before, after] of otherDatabases) {
        await attic.sh('systemctl stop latchkey');
        await sql(before);
        await start('true').finally(() => sql(after));
      }
      expect([...seen].sort()).toEqual(documented.toSorted());
    });

    it('a hub that waits for its database says why as docs/site.md has it, and starts when the cause is gone', async () => {
      const { attic, standby } = site.machines;
      await standby.sh(`systemctl stop ${postgresql}`);
      await attic.sh('systemctl start latchkey');
      const status = site.document(await attic.property('latchkey', 'StatusText'));
      expect(status).toContain(messages(2)[0]);
      expect((await attic.run('latchkey status')).stderr).toContain('no hub is running');
      await standby.sh(`systemctl start ${postgresql}`);
      await eventually(async () => (await attic.run('latchkey status')).status === 0, 30);
    });
  });
});

/** The blocks below a heading; there must be this many. */
function blocks(heading: string, count: number): string[] {
  const found = shellBlocks(GUIDE, heading);
  expect(found, heading).toHaveLength(count);
  return found;
}

/** The text of the first block of a language that contains this. */
function example(language: 'toml' | 'text', part: string): string {
  const found = [...GUIDE.matchAll(/^ *```(\w+)\n([\s\S]*?)^ *```$/gm)].find(
    ([, kind, text = '']) => kind === language && text.includes(part),
  );
  return (found?.[2] ?? '').replace(/^ {3}/gm, '');
}

/** The first message of each row of a table below "What the messages mean". @param table counted from 1 */
function messages(table: number): string[] {
  const section = GUIDE.split('## What the messages mean')[1]?.split(/^\| message .*$/m)[table] ?? '';
  return [...section.matchAll(/^\| `([^`]+)`/gm)].map(([, message = '']) => message);
}

/** What two outputs of `status` have in common: labels, and what does not depend on ids, keys, versions and times. */
function shape(status: string): readonly string[] {
  return status
    .trim()
    .split('\n')
    .map((line) =>
      line
        .replace(/(latchkey|site)-[0-9a-f]{8}/g, '$1-ID')
        .replace(/^(CA fingerprint|version|running for) .*/, '$1')
        .replace(/\d+\.\d+\.\d+ +(?=this hub|\S+ s ago|just now)/, 'VERSION ')
        .replace(/\d+ s ago|just now/, 'AGO')
        .replace(/ +/g, ' '),
    );
}
