import java.net.URI;
import java.net.http.*;
public class Ask {
    public static void main(String[] words) throws Exception {
        String body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hello\"}]}}}";
        HttpRequest request = HttpRequest.newBuilder(URI.create(words[0])).header("Content-Type", "application/json").header("A2A-Version", "1.0").POST(HttpRequest.BodyPublishers.ofString(body)).build();
        System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).statusCode());
    }
}
