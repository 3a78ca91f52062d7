import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

/** Fetches the card of an agent, and calls the URL in it, as clients built on `java.net.http` do: in
 * HTTP/2, so that a connection without TLS begins with an offer of `h2c`. */
public class Calls {
    public static void main(String[] arguments) throws Exception {
        var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).build();
        var card = HttpRequest.newBuilder(URI.create(arguments[0] + "/.well-known/agent-card.json"));
        var found = client.send(card.build(), BodyHandlers.ofString());
        System.out.println(found.version() + " " + found.statusCode());
        var url = found.body().replaceAll("(?s).*\"url\": *\"([^\"]*)\".*", "$1");
        System.out.println(url);
        for (var method : new String[] {"SendMessage", "SendStreamingMessage", "SendMessage"}) {
            var body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" + method + "\",\"params\":{"
                + "\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hi\"}]}}}";
            var call = HttpRequest.newBuilder(URI.create(url)).header("Content-Type", "application/json")
                .header("A2A-Version", "1.0").POST(HttpRequest.BodyPublishers.ofString(body));
            var answer = client.send(call.build(), BodyHandlers.ofString());
            System.out.println(answer.version() + " " + answer.body().strip().replaceAll("\\s+", " "));
        }
    }
}
