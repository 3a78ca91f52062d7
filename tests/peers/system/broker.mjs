/**
 * The middle agent of the system, of @a2a-js/sdk 1.x on gRPC: it asks the worker, once two tasks are at work.
 *
 * `--modules` names a file in the folder whose `node_modules` has the SDK.
 */

import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

const TASKS = 2;

const { values: options } = parseArgs({
  options: {
    modules: { type: 'string' },
    calls: { type: 'string' },
    next: { type: 'string' },
    binding: { type: 'string' },
  },
});
const load = createRequire(options.modules);
const { AgentCard, SendMessageRequest, StreamResponse, TaskState } = load('@a2a-js/sdk');
const { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } = load('@a2a-js/sdk/client');
const { GrpcTransportFactory } = load('@a2a-js/sdk/client/grpc');
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = load('@a2a-js/sdk/server');
const { A2AService, grpcService, UserBuilder } = load('@a2a-js/sdk/server/grpc');
const grpc = load('@grpc/grpc-js');

const textOf = (parts) => parts.map((part) => (part.content?.$case === 'text' ? part.content.value : '')).join('');

/** Asks the worker, and returns its answer. */
async function ask(text) {
  const transports = [JsonRpcTransportFactory, RestTransportFactory, GrpcTransportFactory].map((one) => new one());
  const client = await new ClientFactory({ transports, preferredTransports: [options.binding] }).createFromUrl(options.next);
  const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }] };
  let answer = '';
  for await (const event of client.sendMessageStream(SendMessageRequest.fromJSON({ message, configuration: {} }))) {
    answer = StreamResponse.toJSON(event).artifactUpdate?.artifact.parts[0].text ?? answer;
  }
  return answer;
}

let arrived = 0;
let allArrived;
const all = new Promise((resolve) => (allArrived = resolve));

class Broker {
  async execute({ taskId, contextId, userMessage }, bus) {
    const text = textOf(userMessage.parts);
    appendFileSync(options.calls, `${text}\n`);
    const status = (state) => ({ state, message: undefined, timestamp: new Date().toISOString() });
    const task = { id: taskId, contextId, status: status(TaskState.TASK_STATE_WORKING), artifacts: [], history: [userMessage] };
    bus.publish(AgentEvent.task(task));
    if (++arrived === TASKS) allArrived();
    await all;
    const parts = [{ content: { $case: 'text', value: await ask(text) }, filename: '', mediaType: 'text/plain' }];
    const artifact = { artifactId: 'answer', name: '', description: '', parts, extensions: [] };
    bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: false, lastChunk: true }));
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(TaskState.TASK_STATE_COMPLETED) }));
    bus.finished();
  }

  async cancelTask() {}
}

const server = new grpc.Server();
server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (_, port) => {
  const card = {
    name: 'broker',
    description: 'asks on',
    version: '1.0.0',
    supportedInterfaces: [{ url: `127.0.0.1:${port}`, protocolBinding: 'GRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'ask', name: 'ask', description: 'asks on', tags: ['test'] }],
  };
  const requestHandler = new DefaultRequestHandler(AgentCard.fromJSON(card), new InMemoryTaskStore(), new Broker());
  server.addService(A2AService, grpcService({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  const cards = createServer((_, response) => {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(card));
  });
  cards.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ http: cards.address().port })));
});
process.stdin.on('end', () => process.exit(0)).resume();
