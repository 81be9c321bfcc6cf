import type { Link } from './link.ts';

/**
 * Several links as one. What is sent goes out on each; where one of them can't (its network may be just coming), it is
 * enough that another one can.
 */
export function joined(links: readonly Link[]): Link {
  return {
    serve(records) {
      for (const link of links) link.serve(records);
    },
    respond: (answers) => onAny(links, (link) => link.respond(answers)),
    probe: (records) => onAny(links, (link) => link.probe(records)),
    onClaim(listener) {
      const ends = links.map((link) => link.onClaim(listener));
      return () => {
        for (const end of ends) end();
      };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(links.map((link) => link[Symbol.asyncDispose]()));
    },
  };
}

async function onAny(links: readonly Link[], send: (link: Link) => Promise<void>): Promise<void> {
  const outcomes = await Promise.allSettled(links.map(send));
  const failed = outcomes.filter((outcome) => outcome.status === 'rejected');
  if (failed.length === outcomes.length) throw failed[0]?.reason;
}
