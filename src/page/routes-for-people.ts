declare module 'fastify' {
  interface FastifyContextConfig {
    /** It is for people with a browser alone, and no part of what the hub's OpenAPI document describes. */
    readonly forPeople?: true;
  }
}

/** The options of a route that is for people alone. */
export const FOR_PEOPLE = { config: { forPeople: true } } as const;
