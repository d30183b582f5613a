// Package codec turns files into messages of lambdas and back: spec field "codec".
package codec

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io"

	"github.com/lambdanic/lambdanic/api"
)

// Image is the codec of lambdas that take pixels.
const Image = "image"

// TypePNG is the media type that codec Image reads and writes.
const TypePNG = "image/png"

// ErrTooLarge says that an image's pixels exceed the message limit.
var ErrTooLarge = errors.New("image too large")

// ErrShape says that a reply is not an image of the request's size.
var ErrShape = errors.New("not an image of the request's size")

// Size is the size of an image in pixels, which a message of bare pixels does not contain.
type Size struct{ Width, Height int }

// DecodePNG reads a PNG into 8-bit RGBA pixels, row by row, colours not multiplied by alpha. It looks at the size first, so
// that a small file cannot ask for much memory, and asks reserve for as many bytes as the pixels will take.
func DecodePNG(r io.Reader, limit api.Bytes, reserve func(bytes int64) error) ([]byte, Size, error) {
	var head bytes.Buffer
	config, err := png.DecodeConfig(io.TeeReader(r, &head))
	if err != nil {
		return nil, Size{}, fmt.Errorf("read PNG: %w", err)
	}
	size := Size{config.Width, config.Height}
	// The factors are below 2^31 each, so that their product fits.
	if pixels := uint64(config.Width) * uint64(config.Height); pixels > uint64(limit)/4 {
		return nil, size, fmt.Errorf("%w: %d×%d pixels are %d bytes, the lambda takes %d", ErrTooLarge, size.Width, size.Height, 4*pixels, limit)
	} else if err := reserve(int64(4 * pixels)); err != nil {
		return nil, size, err
	}
	img, err := png.Decode(io.MultiReader(&head, r))
	if err != nil {
		return nil, size, fmt.Errorf("read PNG: %w", err)
	}
	if n, ok := img.(*image.NRGBA); ok && n.Stride == 4*size.Width {
		return n.Pix, size, nil
	}
	rgba := image.NewNRGBA(image.Rect(0, 0, size.Width, size.Height))
	draw.Draw(rgba, rgba.Rect, img, img.Bounds().Min, draw.Src)
	return rgba.Pix, size, nil
}

// EncodePNG writes pixels, one byte (grey) or four (RGBA) each, as a PNG.
func EncodePNG(w io.Writer, pixels []byte, size Size) error {
	rect := image.Rect(0, 0, size.Width, size.Height)
	var img image.Image
	switch n := size.Width * size.Height; len(pixels) {
	case n:
		img = &image.Gray{Pix: pixels, Stride: size.Width, Rect: rect}
	case 4 * n:
		img = &image.NRGBA{Pix: pixels, Stride: 4 * size.Width, Rect: rect}
	default:
		return fmt.Errorf("%w: %d bytes for %d×%d pixels", ErrShape, len(pixels), size.Width, size.Height)
	}
	if err := png.Encode(w, img); err != nil {
		return fmt.Errorf("write PNG: %w", err)
	}
	return nil
}
