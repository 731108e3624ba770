//! Speed of the event decoder on a stream of many small events.

use crew_model::sse::SseDecoder;
use divan::Bencher;
use divan::counter::BytesCount;

/// Events of the stream.
const EVENTS: usize = 200_000;

fn main() {
    divan::main();
}

fn stream() -> Vec<u8> {
    let event = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\
                 \"delta\":{\"type\":\"text_delta\",\"text\":\"word \"}}\n\n";
    event.repeat(EVENTS).into_bytes()
}

#[divan::bench(args = [23, 1460, 16_384], sample_count = 10)]
fn small_events(bencher: Bencher, piece_bytes: usize) {
    let bytes = stream();
    bencher.counter(BytesCount::of_slice(&bytes)).bench_local(|| {
        let mut decoder = SseDecoder::default();
        let mut events = 0_usize;
        for piece in bytes.chunks(piece_bytes) {
            decoder.feed(piece, &mut |_, _| events += 1).expect("the events are short");
        }
        assert_eq!(events, EVENTS);
    });
}
