/**
 * Fastify's option for servers whose routes have no JSON schemas: what would compile them is not loaded. Our own checks are
 * valibot's.
 */
export const NO_SCHEMAS = { compilersFactory: { buildValidator: refuse, buildSerializer: refuse } };

function refuse(): never {
  throw new TypeError('no route here has a schema');
}
