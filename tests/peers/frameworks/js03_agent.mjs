/** An agent of the JavaScript SDK 0.3: JSON-RPC and REST, behaviours by the text of the message. */

import express from 'express';
import { AGENT_CARD_PATH } from '@a2a-js/sdk';
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';

const said = (text, ids) => {
  const parts = [{ kind: 'text', text }];
  return { kind: 'message', messageId: crypto.randomUUID(), role: 'agent', parts, ...ids };
};

const now = () => new Date().toISOString();

class Answering {
  canceled = new Set();

  cancelTask = async (taskId) => void this.canceled.add(taskId);

  async execute(context, bus) {
    const { taskId, contextId, userMessage, task } = context;
    const text = userMessage.parts.map((part) => part.text ?? '').join('');
    const ids = { taskId, contextId };
    const status = (state, final, remark) => {
      const message = remark && said(remark, ids);
      bus.publish({ kind: 'status-update', ...ids, status: { state, message, timestamp: now() }, final });
    };
    if (text === 'direct') {
      bus.publish(said('no task is needed', { contextId }));
      bus.finished();
      return;
    }
    if (!task) {
      const submitted = { state: 'submitted', timestamp: now() };
      bus.publish({ kind: 'task', id: taskId, contextId, status: submitted, history: [userMessage] });
    }
    status('working', false, 'on it');
    if (text === 'ask') {
      status('input-required', true, 'which colour?');
    } else if (text === 'fail') {
      status('failed', true, 'no such luck');
    } else if (text === 'wait') {
      while (!this.canceled.has(taskId)) await new Promise((resolve) => setTimeout(resolve, 10));
      status('canceled', true);
    } else {
      const artifact = (piece, append, lastChunk) => {
        const made = { artifactId: 'answer', parts: [{ kind: 'text', text: piece }] };
        bus.publish({ kind: 'artifact-update', ...ids, artifact: made, append, lastChunk });
      };
      artifact('you said ', false, false);
      artifact(text, true, true);
      status('completed', true);
    }
    bus.finished();
  }
}

const app = express();
const server = app.listen(0, '127.0.0.1', () => {
  const http = server.address().port;
  const base = `http://127.0.0.1:${http}/a2a`;
  const card = {
    name: 'js03 agent',
    description: 'answers each message',
    protocolVersion: '0.3.0',
    version: '1.0.0',
    url: `${base}/jsonrpc`,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [
      { url: `${base}/jsonrpc`, transport: 'JSONRPC' },
      { url: `${base}/rest`, transport: 'HTTP+JSON' },
    ],
    capabilities: { streaming: true, pushNotifications: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'answer', name: 'answer', description: 'answers a message', tags: ['test'] }],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Answering());
  const userBuilder = UserBuilder.noAuthentication;
  app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/a2a/jsonrpc', jsonRpcHandler({ requestHandler, userBuilder }));
  app.use('/a2a/rest', restHandler({ requestHandler, userBuilder }));
  console.log(JSON.stringify({ http }));
});
process.stdin.on('end', () => process.exit(0)).resume();
