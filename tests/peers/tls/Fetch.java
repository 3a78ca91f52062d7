import java.net.URI;
import java.net.http.*;
import java.util.Base64;

/** Fetches a URL by java.net.http: `Fetch.java URL`; see `http_client.py`. */
public class Fetch {
    public static void main(String[] words) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(words[0])).build();
        HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        byte[] certificate = answer.sslSession().orElseThrow().getPeerCertificates()[0].getEncoded();
        System.out.println("status: " + answer.statusCode());
        System.out.println("protocol: " + (answer.version() == HttpClient.Version.HTTP_2 ? "h2" : "http/1.1"));
        System.out.println("-----BEGIN CERTIFICATE-----");
        System.out.println(Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(certificate));
        System.out.println("-----END CERTIFICATE-----");
    }
}
