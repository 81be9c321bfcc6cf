import { InvalidKeyFailure } from '../../configuration/validation.ts';
import { rfc3339Day } from '../../core/clock.ts';
import { type CheckResult, configurationInvalid, fail, ok, warn } from '../check-result.ts';
import { type DoctorContext, isTestMode } from '../context.ts';
import type { PortalProbe } from '../portal-probe.ts';

/** Whether each portal can be reached, and where the way to it ends. */
export async function checkPortals(context: DoctorContext): Promise<CheckResult[]> {
  const { probes, configuration, configurationFailures: faults, hub, env, wall } = context;
  if (isTestMode(hub)) return [ok('in test mode the portal is an emulator in the process of the hub')];
  const skipped = unprobedPortals(context);
  if (configuration.portals.length + skipped.length === 0) {
    if (faults.length > 0) return [configurationInvalid('the portals')];
    return [fail(`${configuration.file} names no portal: add a table such as [portals.home]`)];
  }
  const proxy = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'].find((name) => env[name]);
  const note = proxy === undefined ? '' : ` (${proxy} is set, and the hub uses no proxy)`;
  return [...(await probes).map((probe) => probeResult(probe, note, wall())), ...skipped];
}

/** What the running hub says of portals that can't be asked, because the configuration is wrong about them. */
function unprobedPortals({ configuration, configurationFailures: faults, hub }: DoctorContext): CheckResult[] {
  const appliances = hub.kind === 'running' ? hub.appliances : [];
  const wrong = faults.flatMap((fault) => {
    const isOfAll = !(fault instanceof InvalidKeyFailure) || fault.key === 'portals';
    if (isOfAll) return appliances.map(({ portal }) => portal);
    return /^portals\.([^.]+)/.exec(fault.key)?.[1] ?? [];
  });
  const asked = configuration.portals.map(({ name }) => name);
  const names = [...new Set(wrong)].filter((name) => !asked.includes(name));
  return names.map((name) => {
    const states = appliances.filter(({ portal }) => portal === name).map(({ state }) => state);
    const isWell = states.includes('active') && states.every((state) => state === 'active' || state === 'unpaired');
    const meanwhile = isWell ? '; by the word of the running hub nothing is wrong with it' : '';
    return { ...configurationInvalid(`the way to ${name}`, meanwhile), name: `.${name}` };
  });
}

function probeResult({ key, origin, outcome }: PortalProbe, note: string, now: number): CheckResult {
  const name = `.${key.replace(/^portals\./, '')}`;
  switch (outcome.kind) {
    case 'answered':
      if (outcome.status === 511 || outcome.redirectOrigin !== null) {
        const to =
          outcome.redirectOrigin === null
            ? 'asks for a login to the network'
            : `sends people to ${outcome.redirectOrigin}`;
        const what = `${origin} ${to} (HTTP ${outcome.status}): log in to this network where it wants that (a captive portal), or correct ${key}`;
        return (outcome.status === 511 ? fail : warn)(what, name);
      }
      if (outcome.status >= 500) {
        return warn(
          `${origin} answers, with an error of its own (HTTP ${outcome.status}): wait; the hub goes on trying`,
          name,
        );
      }
      return ok(`${origin} answers`, name);
    case 'untrusted':
      return fail(
        `${origin} shows a certificate that is not trusted: ${untrustedCertificateText(outcome, key, now)}`,
        name,
      );
    case 'stuck':
      return fail(`${origin} is out of reach: ${unreachableText(outcome, key, new URL(origin).hostname)}${note}`, name);
  }
}

function untrustedCertificateText(
  { why, validFrom, validTo }: { why: string; validFrom: number; validTo: number },
  key: string,
  now: number,
): string {
  const clock = `this machine's clock says ${formatDay(now)}`;
  if (now > validTo) {
    return `it ended on ${formatDay(validTo)}, and ${clock}: correct the clock where it is wrong, as the check "clock" says, else ask the portal's operator`;
  }
  if (now < validFrom) {
    return `it begins on ${formatDay(validFrom)}, and ${clock}: correct the clock, as the check "clock" says, or ask the portal's operator`;
  }
  const caFile = key.replace(/\.\w+$/, '.ca_file');
  return `${why}: correct ${key}, name its CA as ${caFile}, or look for a proxy or captive portal on the way`;
}

function unreachableText({ stage, why }: { stage: string; why: string }, key: string, host: string): string {
  switch (stage) {
    case 'name':
      return `the name ${host} could not be looked up (${why}): check the internet connection, the DNS server (/etc/resolv.conf), and ${key}`;
    case 'connection':
      return `no connection (${why}): check the internet connection, any firewall, and ${key}`;
    case 'handshake':
      return `a connection, but no TLS (${why}): check ${key}, and any proxy or firewall on the way`;
    default:
      return `a connection, but no answer to HTTP (${why}): check ${key}, and any proxy or firewall on the way`;
  }
}

function formatDay(instant: number): string {
  return Number.isNaN(instant) ? 'an unknown day' : rfc3339Day(instant);
}
