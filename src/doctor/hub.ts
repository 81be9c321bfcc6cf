import { version } from '../system/version.ts';
import { fail, ok, type Said, warn } from './finding.ts';
import type { Subject } from './subject.ts';

/** Whether the hub runs, can be spoken to, and is of this version; and what it says is wrong with it as a whole. */
export async function checkHub({ hub: answer }: Subject): Promise<Said[]> {
  switch (answer.kind) {
    case 'not_running':
      return [fail(answer.detail)];
    case 'forbidden':
      return [warn(answer.detail)];
    case 'silent':
      return [
        fail(
          `the hub's control socket gives no answer (${answer.detail}): "sudo systemctl restart latchkey", or end it and start it again`,
        ),
      ];
    case 'running': {
      const { hub } = answer;
      // What is wrong with the store or with mDNS is told by their own checks.
      const [copy, claim] = (['hub_id_taken', 'hub_name_claimed'] as const).map((wanted) =>
        hub.problems?.find(({ code }) => code === wanted),
      );
      if (copy !== undefined) return [fail(copy.message)];
      if (claim !== undefined) return [warn(claim.message)];
      if (hub.version !== version()) {
        return [
          warn(
            `the running hub is version ${hub.version}, and this is ${version()}: restart it ("sudo systemctl restart latchkey")`,
          ),
        ];
      }
      return [ok(`${hub.name} (${hub.id}) runs, version ${hub.version}`)];
    }
  }
}
