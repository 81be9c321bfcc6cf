// Nearly valid requests for every operation of the emulator's OpenAPI document.
import fc from 'fast-check';
import { openApiDocument } from '../../../src/emulator/openapi/document.ts';
import type { JsonSchema, OpenApiDocument, OpenApiOperation } from '../operations.ts';
import { FORM, type FuzzRequest, fuzzRequests, JSON_TYPE, type RequestPlan, requestPlan } from '../requests.ts';
import {
  formWriter,
  jsonValue,
  mutatedText,
  repeatedText,
  sometimes,
  specialText,
  textTemplate,
  toLatin1,
  visibleText,
} from '../texts.ts';
import { type EmulatorFacts, memberValues, valueGenerators } from './values.ts';

const { paths } = openApiDocument({ base: 'base', frontend: 'frontend' }, '') as unknown as OpenApiDocument;

/** An operation that requests are planned for. */
interface Operation extends OpenApiOperation {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly origins: readonly ('base' | 'frontend')[];
}

const OPERATIONS = Object.entries(paths).flatMap(([path, item]) => {
  const { servers = [], ...verbs } = item;
  const named = servers.map(({ url }) => (url === 'frontend' ? 'frontend' : 'base'));
  const origins = named.length === 0 ? (['base'] as const) : named;
  return Object.entries(verbs).map(([verb, operation]): Operation => {
    const method = verb.toUpperCase();
    return { ...operation, name: `${method} ${path}`, method, path, origins };
  });
});

/** What is requested more or less often than others, so that complete flows occur. */
const WEIGHTS: Readonly<Record<string, number>> = {
  'POST /external/oauth2helper/config/{client_id}': 10,
  'GET /external/oauth2helper/code/get/{client_id}': 10,
  'GET /external/oauth2helper/code/set/{client_id}': 10,
  'GET /sso/authorize': 10,
  'POST /sso/authorize': 10,
  'POST /sso/token': 25,
  'POST /oauth2/token': 15,
  'POST /_emulator/login': 10,
  'GET /api/whoami': 10,
  'POST /_emulator/device': 10,
  'POST /_emulator/faults': 15,
  'DELETE /_emulator/faults/{id}': 15,
  'DELETE /_emulator/faults': 1,
  // A valid reset is rare, because it invalidates all known values.
  'POST /_emulator/reset': 1,
};
const USUAL_WEIGHT = 4;

/** The name of an issuer beside the default one. */
export const ISSUER = 'staff';

const BEARER_OPERATIONS = new Set(['GET /api/whoami', 'GET /oauth2/userinfo', 'POST /oauth2/userinfo']);

/** Requests to the emulator. */
export function emulatorRequests(facts: EmulatorFacts): fc.Arbitrary<FuzzRequest> {
  return fuzzRequests((good) =>
    fc.oneof(
      ...OPERATIONS.map((operation) => ({
        arbitrary: plan(operation, facts, good),
        weight: WEIGHTS[operation.name] ?? USUAL_WEIGHT,
      })),
      { arbitrary: otherPages(good), weight: 10 },
    ),
  );
}

/** Requests of one operation. */
function plan(operation: Operation, facts: EmulatorFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  const { parameters = [], requestBody, name, method, origins } = operation;
  const values = memberValues(facts, good);
  const inPath = parameters.filter((one) => one.in === 'path');
  const path = fc
    .tuple(...inPath.map((one) => values[one.name] ?? specialText))
    .map((filled) =>
      inPath.reduce((whole, one, index) => whole.replace(`{${one.name}}`, String(filled[index] ?? '')), operation.path),
    );
  const required = parameters.filter((one) => one.required).map((one) => one.name);
  const inQuery = parameters.filter((one) => one.in === 'query').map((one) => [one.name, one.schema] as const);
  const query = members({ properties: Object.fromEntries(inQuery), required }, values, good).map((all) =>
    Object.entries(all).map(([key, value]) => `${key}=${encodeURIComponent(toLatin1(String(value)))}`),
  );
  const isManagement = operation.path.endsWith('/{registered}');
  const ownToken = good
    ? fc.constant(facts.registered.token)
    : sometimes(20, visibleText(40), fc.constant(facts.registered.token));
  const token = isManagement ? ownToken : valueGenerators(facts, good).token('accessTokens');
  return fc
    .record({
      origin: fc.constantFrom(...origins),
      path,
      prefix: sometimes(good ? 0 : 10, fc.constant(`/${ISSUER}`), fc.constant('')),
      query,
      bearer:
        BEARER_OPERATIONS.has(name) || isManagement ? textTemplate`Authorization: Bearer ${token}` : fc.constant(''),
      body: bodyOf(name, requestBody?.content ?? {}, facts, good),
    })
    .map(({ origin, path, prefix, query, bearer, body }) => ({
      origin,
      method,
      path: `${origin === 'frontend' ? prefix : ''}${path}${query.length === 0 ? '' : `?${query.join('&')}`}`,
      heads: [bearer, ...body.heads],
      body: body.text,
    }));
}

/** The body of a request, and the header lines that go with it. */
interface Body {
  readonly heads: readonly string[];
  readonly text: string;
}

function bodyOf(
  name: string,
  content: NonNullable<OpenApiOperation['requestBody']>['content'],
  facts: EmulatorFacts,
  good: boolean,
): fc.Arbitrary<Body> {
  const values = memberValues(facts, good);
  const [form, json] = ['application/x-www-form-urlencoded', 'application/json'].map((type) => content[type]?.schema);
  if (form !== undefined) {
    const variants = (form.oneOf ?? [form]).map((schema) => members(schema, values, good));
    const basic = sometimes(20, fc.constant(true), fc.constant(false));
    return fc.tuple(fc.oneof(...variants), formWriter(good), basic).map(([all, write, isBasic]) => {
      const { client_id: id, client_secret: secret, ...others } = all;
      const texts = Object.fromEntries(Object.entries(all).map(([key, value]) => [key, String(value)]));
      if (!isBasic || secret === undefined) return { heads: [FORM], text: write(texts) };
      for (const key of Object.keys(texts)) if (!(key in others)) delete texts[key];
      const credentials = Buffer.from(`${id}:${secret}`).toString('base64');
      return { heads: [FORM, `Authorization: Basic ${credentials}`], text: write(texts) };
    });
  }
  if (json === undefined) return fc.constant({ heads: name.startsWith('POST ') ? [JSON_TYPE] : [], text: '' });
  const all = name === 'POST /_emulator/faults' ? harmlessFault(json, facts, good) : members(json, values, good);
  const right = all.map((one) => toLatin1(JSON.stringify(one)));
  // A reset is mostly refused.
  const rare = name === 'POST /_emulator/reset' ? sometimes(10, right, fc.constant('{"x":1}')) : right;
  const odd = fc.oneof({ arbitrary: mutatedText(rare), weight: 9 }, repeatedText('[', 5000));
  return (good ? rare : sometimes(40, odd, rare)).map((text) => ({ heads: [JSON_TYPE], text }));
}

/** Members that a schema describes: the required ones, and some of the others. */
function members(
  { properties = {}, required = [] }: JsonSchema,
  values: ReturnType<typeof memberValues>,
  good: boolean,
): fc.Arbitrary<Readonly<Record<string, unknown>>> {
  const always = new Set([...required, 'client_id', 'client_secret', 'username', 'password', 'redirect_uri']);
  const all = Object.entries(properties).filter(([name]) => !good || values[name] !== null);
  const optional = all.filter(([name]) => !always.has(name)).length;
  const percent = Math.min(50, Math.ceil(300 / optional));
  const one = ([name, schema]: readonly [string, JsonSchema]) => {
    const right: fc.Arbitrary<unknown> = values[name] ?? matchingValue(schema);
    const value = good || values[name] != null ? right : sometimes(20, jsonValue, right);
    const member = value.map((chosen) => ({ [name]: chosen }));
    return always.has(name) ? member : sometimes<object>(percent, member, fc.constant({}));
  };
  return fc.tuple(...all.map(one)).map((chosen) => Object.assign({}, ...chosen));
}

/**
 * Faults of each kind that never occur, and others that a mutation may trigger, which do not change the status of
 * responses.
 */
function harmlessFault({ oneOf = [] }: JsonSchema, { victimId }: EmulatorFacts, good: boolean): fc.Arbitrary<object> {
  const byChance = oneOf.filter(({ properties }) => properties?.['probability']);
  const silent = fc.oneof(...byChance.map(matchingValue)).map((fault) => ({ ...(fault as object), probability: 0 }));
  const endpoint = fc.constantFrom('token', '*');
  const offset = fc.constantFrom(0, -3600, 1e10);
  const right = fc.record({ kind: fc.constant('wrong_date'), endpoint, client: fc.constant(victimId), offset });
  const odd = fc.record({ endpoint: fc.constant('token'), kind: jsonValue, status: jsonValue, never: jsonValue });
  return good ? silent : fc.oneof(silent, odd, right);
}

/** Texts that some members accept. */
const TEXTS = ['x', '^http:', 'http://127.0.0.1:1/', 'code:x'];

/** A value that a schema allows. The format of texts is ignored. */
function matchingValue(schema: JsonSchema): fc.Arbitrary<unknown> {
  const { type, minimum = 0.001, maximum = 1e9, properties = {}, required = [] } = schema;
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const some = schema.oneOf ?? schema.anyOf;
  if (some !== undefined) return fc.oneof(...some.map(matchingValue));
  if (type === 'boolean') return fc.boolean();
  if (type === 'null') return fc.constant(null);
  if (type === 'integer') return fc.integer({ min: Math.ceil(minimum), max: Math.min(maximum, 2 ** 31 - 1) });
  if (type === 'number') return fc.double({ min: minimum, max: maximum, noNaN: true });
  if (type !== 'object') return fc.constantFrom(...TEXTS);
  const values = Object.entries(properties).map(([name, one]) => [name, matchingValue(one)] as const);
  return fc.record(Object.fromEntries(values), { requiredKeys: [...required] });
}

/** Paths that the document does not have. */
function otherPages(good: boolean): fc.Arbitrary<RequestPlan> {
  const known = fc.constantFrom('/', '/favicon.ico', '/_emulator');
  const path = sometimes(30, textTemplate`/${visibleText(99)}`, known);
  const origin = fc.constantFrom('frontend' as const, 'base' as const);
  return requestPlan({ origin, path: good ? known : sometimes(20, mutatedText(path), path) });
}
