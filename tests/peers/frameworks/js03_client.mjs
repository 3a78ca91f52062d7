/** The client of the JavaScript SDK 0.3, over JSON-RPC, or with --rest over HTTP+JSON. */

import { parseArgs } from 'node:util';
import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';

const { values } = parseArgs({ options: { 'base-url': { type: 'string' }, rest: { type: 'boolean' } } });
const transport = values.rest ? new RestTransportFactory() : new JsonRpcTransportFactory();
const wanted = { transports: [transport], preferredTransports: [values.rest ? 'HTTP+JSON' : 'JSONRPC'] };
const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, wanted));
const note = (call, value) => console.log(JSON.stringify({ call, ...value }));

async function call(name, promise) {
  try {
    const gave = (await promise) ?? null;
    note(name, { gave });
    return gave;
  } catch (why) {
    note(name, { raised: `${why.name}: ${why.message}` });
    return null;
  }
}

async function stream(name, events, then) {
  try {
    for await (const gave of events) {
      note(name, { gave });
      if (then) await then(gave);
    }
  } catch (why) {
    note(name, { raised: `${why.name}: ${why.message}` });
  }
}

const message = (text, ids) => {
  const parts = [{ kind: 'text', text }];
  return { message: { kind: 'message', messageId: crypto.randomUUID(), role: 'user', parts, ...ids } };
};
const unknown = '00000000-0000-4000-8000-000000000000';

const client = await factory.createFromUrl(values['base-url']);
const done = await call('send', client.sendMessage(message('hello')));
await call('get', client.getTask({ id: done.id }));
await call('cancel a finished task', client.cancelTask({ id: done.id }));
await stream('resubscribe', client.resubscribeTask({ id: done.id }));
const hook = { taskId: done.id, pushNotificationConfig: { id: 'hook-1', url: 'http://127.0.0.1:9/hook' } };
await call('set hook', client.setTaskPushNotificationConfig(hook));
await call('get hook', client.getTaskPushNotificationConfig({ id: done.id, pushNotificationConfigId: 'hook-1' }));
await call('list hooks', client.listTaskPushNotificationConfig({ id: done.id }));
await call('delete hook', client.deleteTaskPushNotificationConfig({ id: done.id, pushNotificationConfigId: 'hook-1' }));
await stream('stream', client.sendMessageStream(message('hello')));
await call('direct', client.sendMessage(message('direct')));
await call('fail', client.sendMessage(message('fail')));
const asked = await call('ask', client.sendMessage(message('ask')));
await stream('answer', client.sendMessageStream(message('blue', { taskId: asked.id, contextId: asked.contextId })));
await stream('wait', client.sendMessageStream(message('wait')), async (event) => {
  const begun = event.kind === 'status-update' && event.status.state === 'working';
  if (begun) await call('cancel', client.cancelTask({ id: event.taskId }));
});
await call('get', client.getTask({ id: unknown }));
await call('send to an unknown task', client.sendMessage(message('hello', { taskId: unknown })));
