#[path = "../../../fuzz/src/deribit.rs"]
mod deribit;
mod seeds {
/// Recorded replies and notifications of the Deribit API, and small ones by hand.
#[must_use]
pub fn deribit_inbound() -> Vec<Vec<u8>> {
    const RECORDED: [&str; 9] = [
        include_str!("data/channels.jsonl"),
        include_str!("data/user_channels.jsonl"),
        include_str!("data/ws_error.json"),
        include_str!("data/ws_order_buy_response.json"),
        include_str!("data/ws_order_cancel_response.json"),
        include_str!("data/ws_order_stop_market_no_filled_amount.json"),
        include_str!("data/ws_portfolio.json"),
        include_str!("data/http_get_instrument.json"),
        include_str!("data/http_get_order_book.json"),
    ];
    const BY_HAND: [&str; 4] = [
        r#"{"jsonrpc":"2.0","method":"heartbeat","params":{"type":"test_request"}}"#,
        r#"{"result":"a\"\u00e9\ud83d\ude00\/","id":"x"}"#,
        r#"[1e-5,-0.0,3.2E+4,9223372036854775807,0.0028213400122472977]"#,
        r#" { "id" : 1 , "result" : [ true , false , null , { } ] } "#,
    ];
    let lines = RECORDED.iter().flat_map(|file| file.lines()).chain(BY_HAND);
    lines.map(|line| line.as_bytes().to_vec()).collect()
}

/// Requests to the Deribit API.
#[must_use]
pub fn deribit_request() -> Vec<Vec<u8>> {
    const REQUESTS: [&str; 5] = [
        r#"{"jsonrpc":"2.0","id":1,"method":"private/buy","params":{"instrument_name":"A","amount":10,"type":"limit","price":5042.5,"label":"a\"b","post_only":true}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"private\/edit","params":{"order_id":"1","amount":20.0,"price":1e3}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"public/auth","params":{"grant_type":"client_signature","client_id":"A","timestamp":1576074319000,"nonce":"n","data":"","signature":"00"}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"public/subscribe","params":{"channels":["book.A.raw","trades.any.any.100ms"]}}"#,
        r#"{"id":"x","method":"private/get_user_trades_by_instrument","params":{"instrument_name":"A","count":5,"sorting":"asc"}}"#,
    ];
    REQUESTS.iter().map(|request| request.as_bytes().to_vec()).collect()
}
}
/// xorshift64*: the same run every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

/// One to four small damages: what a line, a peer or a program in error does to a message.
fn mutate(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.below(256) as u8),
            2 => {
                let other = &seeds[random.below(seeds.len())];
                bytes.truncate(at);
                bytes.extend(&other[random.below(other.len())..]);
            }
            _ if at == bytes.len() => {}
            3 => bytes[at] ^= 1 << random.below(8),
            4 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b' ', b'0'][random.below(7)],
            _ => {
                bytes.remove(at);
            }
        }
    }
    bytes
}

fn smoke(body: fn(&[u8]), seeds: &[Vec<u8>], rounds: usize) {
    assert!(!seeds.is_empty());
    body(&[]);
    seeds.iter().for_each(|seed| body(seed));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..rounds {
        body(&mutate(&mut random, seeds));
    }
}

#[test]
fn inbound() { smoke(deribit::deribit_inbound, &seeds::deribit_inbound(), 20000); }
#[test]
fn request() { smoke(deribit::deribit_request, &seeds::deribit_request(), 20000); }
