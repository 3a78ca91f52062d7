"""stdio framing."""
