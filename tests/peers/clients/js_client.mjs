/**
 * A client of @a2a-js/sdk 1.x that runs scenarios over one binding and writes what the SDK gave it; speaks 0.3 to a 0.3 card.
 *
 * Reads and writes the same as the Python clients: see `kit.py` for the command line and the shape of the transcript.
 * Runs through a link in the environment that `setup.py` makes, where node finds the SDK.
 */

import { createHash, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import {
  AgentCard,
  Message,
  SendMessageRequest,
  StreamResponse,
  Task,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import grpc from '@grpc/grpc-js';

const BINDINGS = { jsonrpc: 'JSONRPC', rest: 'HTTP+JSON', grpc: 'GRPC' };
const UNKNOWN = '00000000-0000-4000-8000-000000000000';
const SCENARIO_MS = 30_000;

/** Writes the events of one scenario as they come. */
class Transcript {
  constructor(scenario) {
    this.scenario = scenario;
  }

  add(event, stream = 'main') {
    const at = Math.round((performance.timeOrigin + performance.now()) * 1e6);
    process.stdout.write(JSON.stringify({ scenario: this.scenario, stream, at, event }) + '\n');
    return event;
  }

  /** Awaits a unary call and writes its answer or its error; undefined after an error. */
  async call(promise, show, stream = 'main') {
    try {
      return this.add(show(await promise), stream);
    } catch (why) {
      this.add(errorOf(why), stream);
      return undefined;
    }
  }

  /** Writes every event of a stream until it ends, and how it ended. */
  async drain(events, stream = 'main', onEvent = () => {}) {
    const seen = [];
    try {
      for await (const event of events) {
        seen.push(this.add(streamed(event), stream));
        onEvent(seen.at(-1));
      }
      this.add({ kind: 'end' }, stream);
    } catch (why) {
      this.add(errorOf(why), stream);
    }
    return seen;
  }
}

function textOf(text) {
  if (text.length <= 200) return { text };
  return { length: [...text].length, sha256: createHash('sha256').update(text).digest('hex') };
}

function partOf(part) {
  if (part.text !== undefined) return textOf(part.text);
  if (part.raw !== undefined) return { raw: part.raw, media: part.mediaType ?? '', name: part.filename ?? '' };
  if (part.url !== undefined) return { url: part.url, media: part.mediaType ?? '' };
  return { data: part.data };
}

/** State and text of a status, both in ProtoJSON. */
function stateOf(status) {
  const text = (status?.message?.parts ?? []).map((part) => part.text ?? '').join('');
  const word = (status?.state ?? 'TASK_STATE_UNSPECIFIED').replace('TASK_STATE_', '');
  return { state: word.toLowerCase().replaceAll('_', '-'), text: text || null };
}

function artifactOf(artifact) {
  return { artifact: artifact.artifactId, name: artifact.name ?? '', parts: (artifact.parts ?? []).map(partOf) };
}

function taskOf(task) {
  const json = Task.toJSON(task);
  const ids = { kind: 'task', task: json.id, context: json.contextId, ...stateOf(json.status) };
  return { ...ids, artifacts: (json.artifacts ?? []).map(artifactOf), history: (json.history ?? []).length };
}

function messageOf(message) {
  const json = Message.toJSON(message);
  const ids = { kind: 'message', task: json.taskId ?? '', context: json.contextId ?? '', message: json.messageId };
  return { ...ids, role: json.role.replace('ROLE_', '').toLowerCase(), parts: (json.parts ?? []).map(partOf) };
}

/** What a stream yields. */
function streamed(response) {
  const json = StreamResponse.toJSON(response);
  if (json.task) return taskOf(Task.fromJSON(json.task));
  if (json.message) return messageOf(Message.fromJSON(json.message));
  const update = json.statusUpdate ?? json.artifactUpdate ?? {};
  const ids = { task: update.taskId, context: update.contextId };
  if (json.statusUpdate) return { kind: 'status', ...ids, ...stateOf(update.status) };
  if (json.artifactUpdate) {
    const chunk = { append: update.append ?? false, last: update.lastChunk ?? false };
    return { kind: 'artifact', ...ids, ...artifactOf(update.artifact), ...chunk };
  }
  return { kind: 'other', which: Object.keys(json) };
}

/** What sendMessage resolves to: a task or a message. */
function answered(result) {
  return 'messageId' in result ? messageOf(result) : taskOf(result);
}

function pushOf(config) {
  const json = TaskPushNotificationConfig.toJSON(config);
  const shown = { kind: 'push', task: json.taskId, id: json.id, url: json.url, token: json.token };
  return { ...shown, scheme: json.authentication?.scheme, credentials: json.authentication?.credentials };
}

function cardOf(card) {
  const json = AgentCard.toJSON(card);
  const where = json.supportedInterfaces.map((one) => [one.protocolBinding, one.protocolVersion, one.url]);
  return { kind: 'card', name: json.name, description: json.description, interfaces: where };
}

function errorOf(why) {
  const code = why.statusCode ?? why.code ?? null;
  return { kind: 'error', type: why.constructor.name, code: code === null ? null : String(code), message: why.message };
}

function said(text, ids = {}, configuration = {}) {
  const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...ids };
  return SendMessageRequest.fromJSON({ message, configuration });
}

/** A callback for `drain` and a promise of the first event that `wanted` accepts. */
function first(wanted) {
  let found;
  const promise = new Promise((resolve) => {
    found = resolve;
  });
  return [promise, (event) => wanted(event) && found(event)];
}

class Scenarios {
  constructor(options) {
    this.options = options;
  }

  /** Fetches the card and makes a client of it. */
  async connect() {
    const base = this.options['base-url'].replace(/\/$/, '');
    const legacy = { legacyCompat: { enabled: true } };
    this.fetched = await new DefaultAgentCardResolver(legacy).resolve(base);
    const card = AgentCard.fromJSON(AgentCard.toJSON(this.fetched));
    for (const one of this.options['follow-card'] ? [] : card.supportedInterfaces) {
      one.url = one.protocolBinding === 'GRPC' ? this.options.grpc : base + new URL(one.url).pathname;
    }
    const grpcChannelCredentials = base.startsWith('https:') ? grpc.credentials.createSsl() : undefined;
    const options = { ...legacy, grpcChannelCredentials };
    const transports = [JsonRpcTransportFactory, RestTransportFactory, GrpcTransportFactory].map((one) => new one(options));
    const preferredTransports = [BINDINGS[this.options.binding]];
    this.client = await new ClientFactory({ transports, preferredTransports }).createFromAgentCard(card);
  }

  play(log, text, stream = 'main', ids = {}) {
    return log.drain(this.client.sendMessageStream(said(text, ids)), stream);
  }

  once(log, text, ids = {}, stream = 'main') {
    return log.call(this.client.sendMessage(said(text, ids)), answered, stream);
  }

  async card(log) {
    log.add(cardOf(this.fetched));
    await log.call(this.client.getAgentCard(), cardOf);
  }

  async unary(log) {
    const sent = await this.once(log, 'unary');
    await log.call(this.client.getTask({ id: sent.task, historyLength: 10, tenant: '' }), taskOf);
    const page = { tenant: '', contextId: sent.context, status: 0, pageSize: 5, pageToken: '' };
    const show = (answer) => ({ kind: 'tasks', tasks: answer.tasks.map(taskOf) });
    await log.call(this.client.listTasks(page), show);
  }

  async streaming(log) {
    await this.play(log, 'stream');
  }

  async parts(log) {
    await this.play(log, 'parts');
  }

  async tricky(log) {
    await this.play(log, 'tricky');
  }

  async slow(log) {
    await this.play(log, 'slow-stream');
  }

  async message_only(log) {
    await this.play(log, 'message');
    await this.once(log, 'message');
  }

  async input(log) {
    const asked = (await this.play(log, 'input')).at(-1);
    await this.play(log, 'blue', 'main', { taskId: asked.task, contextId: asked.context });
    const again = await this.once(log, 'input');
    await this.once(log, 'green', { taskId: again.task, contextId: again.context });
  }

  /** Starts a stream, and waits until its agent works. */
  async begin(log, text) {
    const [working, onEvent] = first((event) => event.state === 'working');
    const running = log.drain(this.client.sendMessageStream(said(text)), 'first', onEvent);
    return [await working, running];
  }

  async subscribe(log) {
    const [event, one] = await this.begin(log, 'gate');
    const two = log.drain(this.client.resubscribeTask({ id: event.task, tenant: '' }), 'second');
    await this.once(log, 'open:' + event.task, {}, 'opener');
    await Promise.all([one, two]);
  }

  async cancel(log) {
    const [event, running] = await this.begin(log, 'long');
    for (let n = 0; n < 2; n++) await log.call(this.client.cancelTask({ id: event.task, tenant: '' }), taskOf);
    // A 0.3 agent tells the canceling call only: the task's own stream falls silent and stays open.
    const stayed = await Promise.race([running, pause(1000, 'open', { ref: false })]);
    if (stayed === 'open') log.add({ kind: 'left' }, 'first');
  }

  async push(log) {
    const { task } = await this.once(log, 'input');
    const made = TaskPushNotificationConfig.fromJSON({
      taskId: task,
      id: 'hook-1',
      url: 'http://127.0.0.1:9/hook',
      token: 'push-token-1',
      authentication: { scheme: 'Bearer', credentials: 'push-credentials-1' },
    });
    const ids = { tenant: '', taskId: task, id: 'hook-1' };
    await log.call(this.client.createTaskPushNotificationConfig(made), pushOf);
    await log.call(this.client.getTaskPushNotificationConfig(ids), pushOf);
    for (let n = 0; n < 2; n++) {
      const listed = this.client.listTaskPushNotificationConfig({ tenant: '', taskId: task, pageSize: 0, pageToken: '' });
      await log.call(listed, (page) => ({ kind: 'pushes', configs: page.configs.map(pushOf) }));
      await log.call(this.client.deleteTaskPushNotificationConfig(ids), () => ({ kind: 'ok' }));
    }
  }

  /** The agent posts each event of a task to a webhook that came with the message. */
  async webhook(log) {
    const names = ['content-type', 'x-a2a-notification-token', 'authorization'];
    const [completed, onPost] = first(({ body }) => {
      const { status } = body.task ?? body.statusUpdate ?? body;
      return status?.state?.toLowerCase().includes('completed');
    });
    const server = createServer(async (request, response) => {
      const body = JSON.parse((await request.toArray()).join(''));
      const headers = Object.fromEntries(names.filter((n) => n in request.headers).map((n) => [n, request.headers[n]]));
      onPost(log.add({ kind: 'webhook', headers, body }, 'webhook'));
      response.setHeader('Content-Length', 0).end();
    });
    await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
    const config = { url: `http://127.0.0.1:${server.address().port}/hook`, token: 'push-token-2' };
    await log.drain(this.client.sendMessageStream(said('unary', {}, { taskPushNotificationConfig: config })));
    await completed;
    server.close();
    server.closeAllConnections();
  }

  async errors(log) {
    const finished = (await this.once(log, 'unary')).task;
    const [unknown, done] = [UNKNOWN, finished].map((id) => ({ id, tenant: '' }));
    await log.call(this.client.getTask(unknown), taskOf);
    await log.call(this.client.cancelTask(unknown), taskOf);
    await log.call(this.client.cancelTask(done), taskOf);
    await log.drain(this.client.resubscribeTask(unknown));
    await log.drain(this.client.resubscribeTask(done));
    await this.play(log, 'unary', 'main', { taskId: finished });
    await this.play(log, 'unary', 'main', { taskId: UNKNOWN });
    await log.drain(this.client.sendMessageStream(SendMessageRequest.fromJSON({ message: { role: 'ROLE_USER' } })));
    await log.call(this.client.getTaskPushNotificationConfig({ tenant: '', taskId: finished, id: 'none' }), pushOf);
  }

  async failures(log) {
    for (const text of ['fail', 'reject', 'crash']) await this.play(log, text);
    await this.once(log, 'fail');
  }

  async big(log) {
    await this.play(log, 'big');
    await this.once(log, 'big');
  }

  async concurrent(log) {
    await Promise.all([...Array(8).keys()].map((n) => this.play(log, 'paced', `stream-${n}`)));
  }
}

async function run(scenarios, name) {
  const log = new Transcript(name);
  const late = pause(SCENARIO_MS, undefined, { ref: false }).then(() => {
    throw new Error('hung');
  });
  try {
    await Promise.race([scenarios[name.replaceAll('-', '_')](log), late]);
  } catch (why) {
    log.add({ kind: 'broken', type: why.constructor.name, message: why.message });
  }
}

const { values } = parseArgs({
  options: {
    binding: { type: 'string', default: 'jsonrpc' },
    'base-url': { type: 'string' },
    grpc: { type: 'string', default: '' },
    'follow-card': { type: 'boolean', default: false },
    scenarios: { type: 'string' },
  },
});
const scenarios = new Scenarios(values);
await scenarios.connect();
for (const name of values.scenarios.split(',')) await run(scenarios, name);
// A gRPC channel has no way to be closed through the SDK, and would keep the process alive.
process.stdout.write('', () => process.exit(0));
