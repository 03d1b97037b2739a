// Asks a sixhop suite one question: first for the whole answer, then for the run as it happens.

import { credentials, Metadata, status, type ServiceError } from "@grpc/grpc-js";
import { ErrorInfo, Status } from "./generated/google/rpc/errors.js";
import { AskRequest, AskResponse, GatewayServiceClient, RunRequest, RunResponse } from "./generated/sixhop/gateway/v1/gateway.js";
import { type Degraded } from "./generated/sixhop/type/v1/run.js";

const gateway = new GatewayServiceClient(process.env.SIXHOP_ADDRESS ?? "127.0.0.1:7400", credentials.createInsecure());
const metadata = new Metadata();
if (process.env.SIXHOP_API_KEY) {
  metadata.set("authorization", `Bearer ${process.env.SIXHOP_API_KEY}`);
}

/** Says until when a call may last: ten seconds from now. */
const inTime = () => ({ deadline: Date.now() + 10_000 });

/** Prints the whole answer at once. */
async function ask(text: string): Promise<void> {
  const request = AskRequest.create({ question: { text } });
  const answer = await new Promise<AskResponse>((resolve, reject) =>
    gateway.ask(request, metadata, inTime(), (error, response) => (error ? reject(error) : resolve(response))),
  );
  console.log(answer.text);
  answer.degradations.forEach(degraded);
}

/** Prints what happens while the answer is made. */
async function run(text: string): Promise<void> {
  const request = RunRequest.create({ question: { text } });
  const responses: AsyncIterable<RunResponse> = gateway.run(request, metadata, inTime());
  for await (const response of responses) {
    const event = response.event?.event; // undefined for an event of a later release
    switch (event?.$case) {
      case "textDelta":
        process.stdout.write(event.value.text);
        break;
      case "restarted":
        console.log(`\nthe text so far is void: ${event.value.reason}`);
        break;
      case "degraded":
        degraded(event.value);
        break;
      case "finished":
        console.log(`\nfinished: ${event.value.agent}, written by ${event.value.model}`);
    }
  }
}

function degraded(part: Degraded): void {
  console.log(`degraded: ${part.part} by ${part.mechanism}: ${part.reason}`);
}

/** Says why a call failed, at which hop, and how much time was left. */
function failure(error: ServiceError): string {
  const packed = error.metadata.get("grpc-status-details-bin")[0];
  const details = packed instanceof Buffer ? Status.decode(packed).details : [];
  const found = details.find((detail) => detail.typeUrl.endsWith("/google.rpc.ErrorInfo"));
  const info = found && ErrorInfo.decode(found.value);
  const reason = info?.reason ?? status[error.code];
  const hop = info?.metadata.originHop ?? info?.metadata.hop ?? "none";
  const left = info?.metadata.remainingMs ?? "unknown";
  return `failed: ${reason}, hop ${hop}, remainingMs ${left}: ${error.details}`;
}

for (const call of [ask, run]) {
  try {
    await call(process.argv[2] ?? "");
  } catch (error) {
    console.log(failure(error as ServiceError)); // keeps nobody from the next call
  }
}
gateway.close();
