import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.MetadataUtils;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import sixhop.gateway.v1.Gateway.AskRequest;
import sixhop.gateway.v1.Gateway.AskResponse;
import sixhop.gateway.v1.Gateway.RunRequest;
import sixhop.gateway.v1.Gateway.RunResponse;
import sixhop.gateway.v1.GatewayServiceGrpc;
import sixhop.gateway.v1.GatewayServiceGrpc.GatewayServiceBlockingStub;
import sixhop.type.v1.Run.Degraded;
import sixhop.type.v1.Run.Question;

/** Asks a sixhop suite one question: first for the whole answer, then for the run as it happens. */
public final class Client {
  private static final long DEADLINE_S = 10;

  /** Prints the whole answer at once. */
  static void ask(GatewayServiceBlockingStub gateway, Question question) {
    AskResponse answer =
        gateway
            .withDeadlineAfter(DEADLINE_S, TimeUnit.SECONDS)
            .ask(AskRequest.newBuilder().setQuestion(question).build());
    System.out.println(answer.getText());
    answer.getDegradationsList().forEach(Client::degraded);
  }

  /** Prints what happens while the answer is made. */
  static void run(GatewayServiceBlockingStub gateway, Question question) {
    var responses =
        gateway
            .withDeadlineAfter(DEADLINE_S, TimeUnit.SECONDS)
            .run(RunRequest.newBuilder().setQuestion(question).build());
    while (responses.hasNext()) {
      RunResponse response = responses.next();
      var event = response.getEvent();
      switch (event.getEventCase()) {
        case TEXT_DELTA -> System.out.print(event.getTextDelta().getText());
        case RESTARTED ->
            System.out.println("\nthe text so far is void: " + event.getRestarted().getReason());
        case DEGRADED -> degraded(event.getDegraded());
        case FINISHED ->
            System.out.printf(
                "%nfinished: %s, written by %s%n",
                event.getFinished().getAgent(), event.getFinished().getModel());
        default -> {} // one that we leave unread, or an event of a later release
      }
    }
  }

  static void degraded(Degraded part) {
    System.out.printf(
        "degraded: %s by %s: %s%n", part.getPart(), part.getMechanism(), part.getReason());
  }

  /** Says why a call failed, at which hop, and how much time was left. */
  static String failure(StatusRuntimeException error) throws InvalidProtocolBufferException {
    ErrorInfo info = ErrorInfo.getDefaultInstance();
    for (Any detail : StatusProto.fromThrowable(error).getDetailsList()) {
      if (detail.is(ErrorInfo.class)) {
        info = detail.unpack(ErrorInfo.class);
      }
    }
    var facts = info.getMetadataMap();
    String code = error.getStatus().getCode().name();
    String reason = info.getReason().isEmpty() ? code : info.getReason();
    String hop = facts.getOrDefault("originHop", facts.getOrDefault("hop", "none"));
    String left = facts.getOrDefault("remainingMs", "unknown");
    String message = error.getStatus().getDescription();
    return String.format("failed: %s, hop %s, remainingMs %s: %s", reason, hop, left, message);
  }

  public static void main(String[] arguments) throws InvalidProtocolBufferException {
    String address = System.getenv().getOrDefault("SIXHOP_ADDRESS", "127.0.0.1:7400");
    String key = System.getenv("SIXHOP_API_KEY");
    Metadata metadata = new Metadata();
    if (key != null) {
      metadata.put(
          Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer " + key);
    }
    ManagedChannel channel = ManagedChannelBuilder.forTarget(address).usePlaintext().build();
    var gateway =
        GatewayServiceGrpc.newBlockingStub(channel)
            .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(metadata));
    Question question = Question.newBuilder().setText(arguments[0]).build();
    List<BiConsumer<GatewayServiceBlockingStub, Question>> calls = List.of(Client::ask, Client::run);
    for (var call : calls) { // one that fails keeps nobody from the next one
      try {
        call.accept(gateway, question);
      } catch (StatusRuntimeException error) {
        System.out.println(failure(error));
      }
    }
    channel.shutdownNow();
  }
}
