// Sign a card with the JavaScript SDK: JSON with `card`, `key`, `header` and `object` on stdin, the signed card on
// stdout. With `object` the SDK gets its own AgentCard object instead of JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.argv[2]}/`);
const { AgentCard, generateAgentCardSignature } = await import(
  pathToFileURL(require.resolve("@a2a-js/sdk").replace(/\.cjs$/, ".js")).href
);
const order = JSON.parse(readFileSync(0, "utf8"));
const sign = generateAgentCardSignature(order.key, order.header);
const signed = await sign(order.object ? AgentCard.fromJSON(order.card) : order.card);
const served = order.object ? AgentCard.toJSON(signed) : signed;
process.stdout.write(JSON.stringify(served));
