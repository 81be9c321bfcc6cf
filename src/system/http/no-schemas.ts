/**
 * Fastify's option for servers whose routes have no JSON schemas, so that it does not load the compilers. Valibot
 * validates requests.
 */
export const NO_SCHEMAS = { compilersFactory: { buildValidator: refuse, buildSerializer: refuse } };

function refuse(): never {
  throw new TypeError('no route here has a schema');
}
