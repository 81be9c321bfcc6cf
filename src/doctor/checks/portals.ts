import { InvalidKeyFailure } from '../../configuration/validation.ts';
import { rfc3339Day } from '../../core/clock.ts';
import { type CheckResult, configurationInvalid, fail, ok, warn } from '../check-result.ts';
import { type DoctorContext, isTestMode } from '../context.ts';
import type { PortalProbe } from '../portal-probe.ts';

/** Checks whether each portal is reachable, and which stage of the connection fails. */
export async function checkPortals(context: DoctorContext): Promise<CheckResult[]> {
  const { probes, configuration, configurationFailures, hub, env, wall } = context;
  if (isTestMode(hub)) return [ok("in test mode the portal is an emulator in the hub's own process")];
  const skipped = unprobedPortals(context);
  if (configuration.portals.length + skipped.length === 0) {
    if (configurationFailures.length > 0) return [configurationInvalid('the portals')];
    return [fail(`${configuration.file} has no portal: add a section [portals.home]`)];
  }
  const proxy = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'].find((name) => env[name]);
  const note = proxy === undefined ? '' : ` (${proxy} is set, but the hub uses no proxy)`;
  return [...(await probes).map((probe) => probeResult(probe, note, wall())), ...skipped];
}

/**
 * Reports portals that can't be probed because their configuration is invalid, with what the running hub knows about
 * them.
 */
function unprobedPortals({ configuration, configurationFailures, hub }: DoctorContext): CheckResult[] {
  const connections = hub.kind === 'running' ? hub.connections : [];
  const invalid = configurationFailures.flatMap((failure) => {
    const concernsAll = !(failure instanceof InvalidKeyFailure) || failure.key === 'portals';
    if (concernsAll) return connections.map(({ portal }) => portal);
    return /^portals\.([^.]+)/.exec(failure.key)?.[1] ?? [];
  });
  const probed = configuration.portals.map(({ name }) => name);
  const names = [...new Set(invalid)].filter((name) => !probed.includes(name));
  return names.map((name) => {
    const states = connections.filter(({ portal }) => portal === name).map(({ state }) => state);
    const isHealthy = states.includes('active') && states.every((state) => state === 'active' || state === 'unpaired');
    const addition = isHealthy ? '; the running hub reports no problem with it' : '';
    return { ...configurationInvalid(`the connection to ${name}`, addition), name: `.${name}` };
  });
}

function probeResult({ key, origin, outcome }: PortalProbe, note: string, now: number): CheckResult {
  const name = `.${key.replace(/^portals\./, '')}`;
  switch (outcome.kind) {
    case 'answered':
      if (outcome.status === 511 || outcome.redirectOrigin !== null) {
        const finding =
          outcome.redirectOrigin === null
            ? 'requires a login to the network'
            : `redirects to ${outcome.redirectOrigin}`;
        const text = `${origin} ${finding} (HTTP ${outcome.status}): if this network has a login page (a captive portal), log in there, or correct ${key}`;
        return (outcome.status === 511 ? fail : warn)(text, name);
      }
      if (outcome.status >= 500) {
        return warn(
          `${origin} responds with an error of its own (HTTP ${outcome.status}): wait; the hub keeps trying`,
          name,
        );
      }
      return ok(`${origin} responds`, name);
    case 'untrusted':
      return fail(`the certificate of ${origin} is not trusted: ${untrustedCertificateText(outcome, key, now)}`, name);
    case 'stuck':
      return fail(`${origin} is unreachable: ${unreachableText(outcome, key, new URL(origin).hostname)}${note}`, name);
  }
}

function untrustedCertificateText(
  { why, validFrom, validTo }: { why: string; validFrom: number; validTo: number },
  key: string,
  now: number,
): string {
  const clock = `this machine's clock says ${formatDay(now)}`;
  if (now > validTo) {
    return `it expired on ${formatDay(validTo)}, and ${clock}: if the clock is wrong, correct it as the check "clock" says; if it is right, ask the portal's operator`;
  }
  if (now < validFrom) {
    return `it is valid from ${formatDay(validFrom)}, and ${clock}: if the clock is wrong, correct it as the check "clock" says; if it is right, ask the portal's operator`;
  }
  const caFile = key.replace(/\.\w+$/, '.ca_file');
  return `${why}: correct ${key}, check for a proxy or a login page of this network (captive portal), or set the portal's CA as ${caFile}`;
}

function unreachableText({ stage, why }: { stage: string; why: string }, key: string, host: string): string {
  switch (stage) {
    case 'name':
      return `the name ${host} could not be looked up (${why}): check the internet connection, the DNS server (/etc/resolv.conf) and ${key}`;
    case 'connection':
      return `no connection (${why}): check the internet connection, any firewall and ${key}`;
    case 'handshake':
      return `it is connected, but TLS fails (${why}): check ${key}, and any proxy or firewall in between`;
    default:
      return `it is connected, but there is no HTTP response (${why}): check ${key}, and any proxy or firewall in between`;
  }
}

function formatDay(instant: number): string {
  return Number.isNaN(instant) ? 'an unknown day' : rfc3339Day(instant);
}
