//! Every message of the dialect with its required fields: encoded, decoded, and rejected if one is missing.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use tickpath_fix::deribit::{
    Credentials, ExecutionReport, MarketDataIncremental, MarketDataReject, MarketDataRequest,
    MarketDataSnapshot, MassQuote, MassQuoteAck, NewOrderSingle, OrderCancelReject,
    OrderCancelReplaceRequest, OrderCancelRequest, OrderMassCancelReport, OrderMassCancelRequest,
    OrderMassStatusRequest, PositionReport, ProtectionLimits, ProtectionReset, ProtectionResult, QuoteCancel,
    RequestForPositions, SecurityDefinition, SecurityDefinitionRequest, SecurityList, SecurityListRequest,
    SecurityStatus, SecurityStatusRequest, TradeCaptureAck, TradeCaptureReport, TradeCaptureRequest,
    UserRequest, UserResponse,
};
use tickpath_fix::session::{BusinessReject, Logout, Reject};
use tickpath_fix::{Body, Message, MsgType, Parsed, SessionRejectReason, Writer};

/// Checks a message of fields `tag=value|...`, each of which is required or part of a group.
#[track_caller]
fn check<B>(msg_type: &str, required: &str, others: &str)
where
    B: for<'a> Lifetime<'a>,
{
    let fields: Vec<(u32, &str)> = required
        .split('|')
        .chain(others.split('|'))
        .filter_map(|field| field.split_once('='))
        .map(|(tag, value)| (tag.parse().unwrap(), value))
        .collect();
    let required_count = required.split('|').filter(|field| !field.is_empty()).count();
    let write = |left_out: Option<usize>| {
        let mut buffer = vec![0; 4096];
        let mut writer = Writer::new(&mut buffer, MsgType::new(msg_type));
        writer.value(34, 7_u64);
        for (index, (tag, value)) in fields.iter().enumerate() {
            if left_out != Some(index) {
                writer.value(*tag, *value);
            }
        }
        let len = writer.finish().unwrap();
        buffer.truncate(len);
        buffer
    };
    let bytes = write(None);
    assert_eq!(B::again(&bytes).unwrap(), bytes, "{}", String::from_utf8_lossy(&bytes));
    for (index, (tag, _)) in fields.iter().enumerate().take(required_count) {
        let (missing, reason) = B::again(&write(Some(index))).unwrap_err();
        assert_eq!((missing, reason), (*tag, SessionRejectReason::REQUIRED_TAG_MISSING));
    }
}

/// A message with any lifetime: decodes and encodes it, with the same sequence number.
trait Lifetime<'a> {
    fn again(bytes: &'a [u8]) -> Result<Vec<u8>, (u32, SessionRejectReason)>;
}

macro_rules! bodies {
    ($($name:ident)*) => {
        $(
            impl<'a> Lifetime<'a> for $name<'static> {
                fn again(bytes: &'a [u8]) -> Result<Vec<u8>, (u32, SessionRejectReason)> {
                    let Parsed::Complete { message, .. } = Message::parse(bytes) else { panic!() };
                    assert_eq!(message.msg_type(), <$name<'a> as Body<'a>>::MSG_TYPE);
                    let body = $name::decode(&message).map_err(|error| (error.tag, error.reason))?;
                    let mut buffer = vec![0; bytes.len() + 1];
                    let mut writer = Writer::new(&mut buffer, message.msg_type());
                    writer.value(34, 7_u64);
                    body.encode(&mut writer);
                    let len = writer.finish().unwrap();
                    buffer.truncate(len);
                    Ok(buffer)
                }
            }
        )*
    };
}

bodies! {
    BusinessReject Credentials ExecutionReport Logout MarketDataIncremental MarketDataReject MarketDataRequest
    MarketDataSnapshot MassQuote MassQuoteAck NewOrderSingle OrderCancelReject OrderCancelReplaceRequest
    OrderCancelRequest OrderMassCancelReport OrderMassCancelRequest OrderMassStatusRequest PositionReport
    ProtectionLimits ProtectionReset ProtectionResult QuoteCancel Reject RequestForPositions
    SecurityDefinition SecurityDefinitionRequest SecurityList SecurityListRequest SecurityStatus
    SecurityStatusRequest TradeCaptureAck TradeCaptureReport TradeCaptureRequest UserRequest UserResponse
}

#[test]
fn messages_of_the_session() {
    check::<Credentials>(
        "A",
        "",
        "95=5|96=1.abc|553=me|554=pw|9001=Y|9002=N|9004=app|9005=sig|9007=Y|9009=N|9010=Y|9015=N|9018=Y",
    );
    check::<Reject>("3", "45=5", "371=44|372=D|373=6|58=text");
    check::<Logout>("5", "", "58=text|9003=Y");
    check::<BusinessReject>("j", "372=D|380=3", "45=5|379=id|58=text");
}

#[test]
fn orders() {
    check::<NewOrderSingle>(
        "D",
        "11=a|54=1|38=10.0|55=BTC-PERPETUAL",
        "44=0.0005|40=2|59=3|18=6A|99=100.5|1138=5|1088=1|854=0|211=-3|1094=8|62=20260101-00:00:00.000|100010=l|100012=1|9008=Y|5127=1",
    );
    check::<OrderCancelReplaceRequest>(
        "G",
        "55=X|54=2|38=3",
        "41=o|11=c|100010=l|40=2|44=1|18=E|854=1|1138=0|9008=N|62=20260101-00:00:00.000|15=BTC",
    );
    check::<OrderCancelRequest>("F", "", "41=o|11=c|100010=l|55=X|15=BTC");
    check::<ExecutionReport>(
        "8",
        "39=2",
        "150=F|37=o|11=o|41=c|54=1|12=0|151=0|14=1|38=1|40=2|44=5|103=0|58=x|55=X|854=1|231=10|6=5|152=10|31=5|32=1|584=m|585=7|911=3|9019=g|117=q|302=s|299=e|9034=Y|1362=2|1363=X#1|1364=5|1365=1|1443=2|1363=X#2|1364=5|1365=1",
    );
    check::<OrderCancelReject>("9", "", "39=8|102=1|58=not_found|41=o|11=c|100010=l|151=1|6=2");
    check::<OrderMassCancelRequest>("q", "11=a|530=10", "100010=l|167=OPT|55=X|15=BTC|9031=Y");
    check::<OrderMassCancelReport>("r", "", "11=a|37=o|530=7|531=7|532=1|533=2|58=x|298=4|534=2|41=a|41=b");
}

#[test]
fn quotes_and_their_protection() {
    check::<MassQuote>(
        "i",
        "117=q|9019=default",
        "62=20260101-00:00:00.000|296=2|302=s|304=2|295=2|299=1|55=X|132=1|133=2|134=3|135=4|18=6A|299=2|55=Y|134=0|302=t|295=1|299=3|55=X|132=5|134=6",
    );
    check::<MassQuoteAck>(
        "b",
        "297=0",
        "117=q|300=99|58=x|295=3|299=1|9020=0|302=s|1167=21|55=X|54=1|37=o|60=20260101-00:00:00.000|132=1|134=3|299=t|9020=1|55=X|54=2|192=4|299=2|9020=2|1167=5|368=10043|58=price_wrong_tick",
    );
    check::<QuoteCancel>("Z", "", "1166=m|298=7|55=X|15=BTC|167=FUT|302=s|9032=-0.1|9033=0.5|9031=Y");
    check::<ProtectionLimits>(
        "MM",
        "20114=r|15=BTC",
        "5544=USDC|9019=g|20110=1.5|20111=0|20118=0|20112=5|20116=10|20119=3",
    );
    check::<ProtectionReset>("MZ", "20114=r|15=BTC", "5544=USD|9019=g");
    check::<ProtectionResult>("MR", "20114=r|20117=Y", "58=success");
}

#[test]
fn own_trades() {
    check::<TradeCaptureRequest>("AD", "568=r|569=0|55=X", "263=1");
    check::<TradeCaptureAck>("AQ", "568=r|569=1|571=2|750=2|55=X", "58=x");
    check::<TradeCaptureReport>(
        "AE",
        "570=N|55=X|32=1|31=2.5|1003=t|75=20260101|60=20260101-00:00:00.000",
        "568=r|552=1|54=1|37=o|12=-0.1|479=BTC",
    );
}

#[test]
fn market_data() {
    check::<MarketDataRequest>(
        "V",
        "262=r|263=1",
        "264=0|265=1|55=X|9011=Y|9012=N|100007=20|100008=1767225600000|267=2|269=0|269=1|146=2|55=X|55=Y",
    );
    check::<MarketDataReject>("Y", "262=r", "281=0|58=x");
    check::<MarketDataSnapshot>(
        "W",
        "55=X",
        "262=r|311=I|810=1.5|231=10|201=1|100087=5|100090=2|746=9|100092=0.0001|100093=-0.0001|268=2|269=0|270=1|271=2|269=2|270=3|271=4|272=20260101-00:00:00.000|100009=t|54=1|44=5|58=9|100091=MT",
    );
    check::<MarketDataSnapshot>("W", "55=X", "268=0");
    check::<MarketDataIncremental>(
        "X",
        "55=X",
        "262=r|746=9|268=2|279=0|269=0|270=1|271=2|279=2|269=1|270=3",
    );
}

#[test]
fn reference_data_and_the_account() {
    check::<SecurityListRequest>("x", "320=r|559=0", "263=1|15=BTC|5544=USDC|167=OPT|9013=Y|9018=Y");
    check::<SecurityList>(
        "y",
        "320=r",
        "322=s|560=0|58=t|146=2|55=X|107=x|167=OPT|201=0|202=100|947=USD|15=BTC|1524=USD|2576=4|969=0.5|454=1|455=7|456=101|1205=1|1206=0|1208=0.5|55=Y",
    );
    check::<SecurityDefinitionRequest>("c", "320=r|321=1", "15=BTC|48=i|555=2|600=X|623=1|624=1|600=Y");
    check::<SecurityDefinition>("d", "320=r|322=r|323=5", "55=X|58=x|555=2|600=X|623=-1|600=Y|623=1");
    check::<SecurityStatusRequest>("e", "324=r|55=X|263=0", "");
    check::<SecurityStatus>("f", "55=X", "324=r|326=7|330=1|331=2|332=3|333=4|31=5|58=x");
    check::<OrderMassStatusRequest>("AF", "584=r|585=7", "9014=0|55=X|15=BTC");
    check::<RequestForPositions>("AN", "710=r|724=0", "263=1|15=BTC");
    check::<PositionReport>(
        "AP",
        "",
        "721=1|710=r|724=0|728=0|702=2|703=TQ|704=1|705=0|55=X|854=1|231=10|883=5|730=7|95=5|96=1;2;3|100088=1|100089=0.5|703=TQ|55=Y",
    );
    check::<UserRequest>("BE", "923=r|924=4|553=me", "15=BTC");
    check::<UserResponse>(
        "BF",
        "923=r",
        "553=me|926=1|15=BTC|100001=1|100002=2|100003=3|100004=4|100005=-5|100006=6|100011=7|100013=8",
    );
}
