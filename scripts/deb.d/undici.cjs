// The parts of undici that Latchkey uses, under the names of undici's index. The index itself would also load fetch,
// WebSockets, caches and mocks.
const Dispatcher = require('undici/lib/dispatcher/dispatcher');
const api = require('undici/lib/api');
const { getGlobalDispatcher } = require('undici/lib/global');

Object.assign(Dispatcher.prototype, api);

exports.Agent = require('undici/lib/dispatcher/agent');
exports.Client = require('undici/lib/dispatcher/client');
exports.Pool = require('undici/lib/dispatcher/pool');
exports.buildConnector = require('undici/lib/core/connect');
exports.request = (url, { dispatcher = getGlobalDispatcher(), method = 'GET', ...options } = {}) => {
  const { origin, pathname, search } = new URL(url);
  return dispatcher.request({ ...options, method, origin, path: pathname + search });
};
