import { fail, needsRoot, ok, type Said, warn } from './finding.ts';
import type { Subject } from './subject.ts';

/** Whether a hub would start with the configuration as it is now. */
export async function checkConfiguration({ configuration, fault, unread, hub, isRoot }: Subject): Promise<Said[]> {
  if (configuration === null) {
    const what = fault ?? 'it can not be read';
    if (!isRoot && what.includes('EACCES')) return [warn(`${what}: run it with sudo`)];
    const meanwhile = hub.kind === 'running' ? '; the running hub goes on with what it read before' : '';
    return [fail(`${what}${meanwhile}`)];
  }
  const { file, portals, appliances } = configuration;
  if (portals.length === 0) return [fail(`${file} is missing or names no portal: add a table such as [portals.home]`)];
  const what = `${file}: portals: ${portals.map(({ name }) => name).join(', ')}; declared appliances: ${appliances.length}`;
  const secrets = unread.length === 0 ? [] : [needsRoot(`the secrets ${unread.join(', ')}`)];
  return [ok(what), ...secrets.map((said) => ({ ...said, name: '.secrets' }))];
}
