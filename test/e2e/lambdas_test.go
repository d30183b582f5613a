package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/patient"
)

// onEachTarget deploys a bundled lambda for each target in turn, in one instance, and checks that it runs there.
func onEachTarget(t *testing.T, i *instance, dir string, flags []string, test func(t *testing.T, name string)) {
	for _, target := range []api.Target{api.TargetNIC, api.TargetProcess} {
		t.Run(string(target), func(t *testing.T) {
			name := filepath.Base(dir) + "-" + string(target)
			args := append([]string{"deploy", dir, "--name", name, "--target", string(target)}, flags...)
			i.on(t).run(args...)
			if f := i.on(t).describe(name); f.Target != target || f.State != api.StateReady {
				t.Fatalf("deployed for %s, but: %+v", target, f)
			}
			test(t, name)
		})
	}
}

// post calls a function by the gateway.
func (i *instance) post(function, method string, body []byte) (int, []byte, http.Header) {
	i.t.Helper()
	url := fmt.Sprintf("http://%s/function/%s?method=%s", i.gateway, function, method)
	answer, err := http.Post(url, "application/octet-stream", bytes.NewReader(body))
	if err != nil {
		i.t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		i.t.Fatal(err)
	}
	return answer.StatusCode, got, answer.Header
}

// expect calls a function and compares status and body.
func (i *instance) expect(function, method, body string, status int, want string) http.Header {
	i.t.Helper()
	code, got, header := i.post(function, method, []byte(body))
	if code != status || string(got) != want {
		i.t.Errorf("%s(%q): %d %q, want %d %q", function, body, code, got, status, want)
	}
	return header
}

const hello = "Hello from the NIC.\n"

func TestWebServer(t *testing.T) {
	i := up(t)
	long := strings.Repeat("All work and no sleep makes a lambda answer in microseconds. 0123\n", 30)
	onEachTarget(t, i, "lambdas/web_server", nil, func(t *testing.T, name string) {
		i := i.on(t)
		header := i.expect(name, "0", "/hello", http.StatusOK, hello)
		if by := header.Get(api.HeaderServedBy); !strings.HasSuffix(by, strings.TrimPrefix(name, "web_server-")) {
			t.Errorf("%s: %q does not name the target", api.HeaderServedBy, by)
		}
		i.expect(name, "0", "/long", http.StatusOK, long)
		if code, _, _ := i.post(name, "0", []byte("/nothing")); code != http.StatusNotFound {
			t.Errorf("an unknown page: status %d", code)
		}
		if got := i.run("invoke", name, "--data", "/hello"); string(got) != hello {
			t.Errorf("invoke: %q", got)
		}
	})
	t.Run("own statuses", func(t *testing.T) {
		onEachTarget(t, i.on(t), "test/lambdas/turnstile", nil, func(t *testing.T, name string) {
			i := i.on(t)
			i.expect(name, "0", "3", http.StatusOK, "3")
			i.expect(name, "0", "4", http.StatusTooManyRequests, "the function answered with status 129, by HTTP 429 Too Many Requests\n")
			i.expect(name, "0", "", http.StatusInternalServerError, "the function answered with status 42\n")
		})
	})
}

func TestKVClient(t *testing.T) {
	i := up(t)
	m := startMemcached(t, i.hostAddr())
	service := []string{"--service", fmt.Sprintf("memcached=host:%d", m.Port)}
	onEachTarget(t, i, filepath.Join(patient.Lambdas(t, filepath.Join(root, "lambdas")), "kv_client"), service, func(t *testing.T, name string) {
		const get, set = "0", "1"
		i := i.on(t)
		key := "key-" + name
		i.expect(name, get, key, http.StatusNotFound, "the function answered with status not found\n")
		i.expect(name, set, fmt.Sprintf("%c%s%s", len(key), key, "set by the lambda"), http.StatusOK, "STORED")
		item, err := m.Client.Get(key)
		if err != nil || string(item.Value) != "set by the lambda" {
			t.Errorf("an ordinary client reads %+v, %v", item, err)
		}
		key = "other-" + name // an earlier request, sent again on a busy machine, may still set the first key
		if err := m.Client.Set(&memcache.Item{Key: key, Value: []byte("set by an ordinary client")}); err != nil {
			t.Fatal(err)
		}
		i.expect(name, get, key, http.StatusOK, key+"=set by an ordinary client")
		if code, _, _ := i.post(name, get, []byte("a b")); code != http.StatusBadRequest {
			t.Errorf("a key with a space: status %d", code)
		}
	})
}

// Nobody answers: the lambda's side tells the client, well before the client would have given up by itself.
func TestKVClientTimeout(t *testing.T) {
	i := up(t)
	service := []string{"--service", "memcached=" + silentUDP(t, i.hostAddr())}
	onEachTarget(t, i, "lambdas/kv_client", service, func(t *testing.T, name string) {
		f := i.on(t).describe(name)
		client, err := lambdanic.Dial(f.Endpoint.String(), lambdanic.WithTimeout(patience))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		_, err = client.Call(t.Context(), lambdanic.Request{Workload: f.Workload, Body: []byte("key")})
		if !errors.Is(err, lambdanic.ErrServiceTimeout) {
			t.Errorf("got %v", err)
		}
		if code, body, _ := i.on(t).post(name, "0", []byte("key")); code != http.StatusGatewayTimeout {
			t.Errorf("status %d, %s", code, body)
		}
	})
}

func TestImageTransformer(t *testing.T) {
	i := up(t)
	onEachTarget(t, i, "lambdas/image_transformer", nil, func(t *testing.T, name string) {
		for _, size := range []image.Point{{1, 1}, {256, 256}, {1920, 1080}} {
			in := randomImage(size)
			from, to := filepath.Join(t.TempDir(), "in.png"), filepath.Join(t.TempDir(), "out.png")
			writePNG(t, from, in)
			i.on(t).run("invoke", name, "--file", from, "--out", to)
			checkGrey(t, in, readPNG(t, to))
		}
	})
}

func randomImage(size image.Point) *image.NRGBA {
	img := image.NewNRGBA(image.Rectangle{Max: size})
	source := rand.NewChaCha8([32]byte{byte(size.X), byte(size.Y)})
	_, _ = source.Read(img.Pix)
	return img
}

// checkGrey computes ITU-R BT.601 luma in integers, as the lambda's source documents it, pixel by pixel.
func checkGrey(t *testing.T, in *image.NRGBA, out image.Image) {
	t.Helper()
	if out.Bounds() != in.Bounds() {
		t.Fatalf("%v became %v", in.Bounds(), out.Bounds())
	}
	for y := range in.Rect.Dy() {
		for x := range in.Rect.Dx() {
			c := in.NRGBAAt(x, y)
			want := color.Gray{Y: uint8((77*int(c.R) + 150*int(c.G) + 29*int(c.B) + 128) / 256)}
			if got := out.At(x, y); got != want {
				t.Fatalf("pixel %d,%d of %v: %v became %v, want %v", x, y, in.Bounds().Max, c, got, want)
			}
		}
	}
}

func writePNG(t *testing.T, path string, img image.Image) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(f, img); err != nil {
		t.Fatal(err)
	}
}

func readPNG(t *testing.T, path string) image.Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return img
}
