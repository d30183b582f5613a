package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"testing"
)

func enough(int64) error { return nil }

func encode(t *testing.T, img image.Image) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestDecodeKeepsColoursAndOrder(t *testing.T) {
	palette := color.Palette{color.NRGBA{1, 2, 3, 255}, color.NRGBA{250, 100, 7, 255}}
	straight := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	straight.SetNRGBA(0, 0, color.NRGBA{1, 2, 3, 4})
	straight.SetNRGBA(1, 0, color.NRGBA{250, 100, 7, 128})
	indexed := image.NewPaletted(image.Rect(0, 0, 2, 1), palette)
	indexed.SetColorIndex(1, 0, 1)
	for name, c := range map[string]struct {
		img  image.Image
		want []byte
	}{
		"alpha":   {straight, []byte{1, 2, 3, 4, 250, 100, 7, 128}},
		"palette": {indexed, []byte{1, 2, 3, 255, 250, 100, 7, 255}},
	} {
		got, size, err := DecodePNG(encode(t, c.img), 8, enough)
		if err != nil || size != (Size{2, 1}) || !bytes.Equal(got, c.want) {
			t.Errorf("%s: %v %v (%v), want %v", name, got, size, err, c.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	img := encode(t, image.NewGray(image.Rect(0, 0, 3, 3))).Bytes()
	if _, _, err := DecodePNG(bytes.NewReader(img), 35, enough); !errors.Is(err, ErrTooLarge) {
		t.Errorf("36 bytes of pixels with room for 35: %v", err)
	}
	if _, _, err := DecodePNG(bytes.NewReader(img[:len(img)-20]), 36, enough); err == nil {
		t.Error("a truncated file was read")
	}
	full := errors.New("full")
	if _, _, err := DecodePNG(bytes.NewReader(img), 36, func(n int64) error {
		if n != 36 {
			t.Errorf("asks for %d bytes", n)
		}
		return full
	}); !errors.Is(err, full) {
		t.Errorf("without memory: %v", err)
	}
	// A header that promises 2^31-1 pixels square must be refused before there is memory for them.
	bomb := bytes.Clone(img)
	binary.BigEndian.PutUint32(bomb[16:], 1<<31-1)
	binary.BigEndian.PutUint32(bomb[20:], 1<<31-1)
	binary.BigEndian.PutUint32(bomb[29:], crc32.ChecksumIEEE(bomb[12:29]))
	if _, _, err := DecodePNG(bytes.NewReader(bomb), 1<<20, enough); err == nil {
		t.Error("a bomb was read")
	}
}

func TestEncode(t *testing.T) {
	var b bytes.Buffer
	if err := EncodePNG(&b, []byte{0, 9, 200, 255}, Size{2, 2}); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil || img.(*image.Gray).GrayAt(0, 1).Y != 200 {
		t.Errorf("got %v (%v)", img, err)
	}
	if err := EncodePNG(&b, []byte{1, 2, 3}, Size{2, 2}); !errors.Is(err, ErrShape) {
		t.Errorf("3 bytes for 4 pixels: %v", err)
	}
}

func FuzzDecodePNG(f *testing.F) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 3))); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, file []byte) {
		pixels, size, err := DecodePNG(bytes.NewReader(file), 1<<16, enough)
		if err == nil && (len(pixels) != 4*size.Width*size.Height || len(pixels) > 1<<16) {
			t.Errorf("%d bytes for %v", len(pixels), size)
		}
	})
}
