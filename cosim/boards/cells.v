// What the cells of an ECP5 do that yosys has no model of. Timing is not modelled: a PLL's clock is
// its input, so a board runs a cycle of its processor in a cycle of its oscillator.

module EHXPLLL(input CLKI, CLKFB, RST, STDBY, PHASESEL0, PHASESEL1, PHASEDIR, PHASESTEP,
               PHASELOADREG, PLLWAKESYNC, ENCLKOP, output CLKOP, LOCK);
  parameter PLLRST_ENA = "DISABLED", INTFB_WAKE = "DISABLED", STDBY_ENABLE = "DISABLED";
  parameter DPHASE_SOURCE = "DISABLED", FEEDBK_PATH = "CLKOP", CLKOP_ENABLE = "ENABLED";
  parameter OUTDIVIDER_MUXA = "DIVA", OUTDIVIDER_MUXB = "DIVB", OUTDIVIDER_MUXC = "DIVC";
  parameter OUTDIVIDER_MUXD = "DIVD";
  parameter CLKI_DIV = 1, CLKFB_DIV = 1, CLKOP_DIV = 1, CLKOP_CPHASE = 0, CLKOP_FPHASE = 0;
  assign CLKOP = CLKI;
  assign LOCK = 1'b1;
endmodule

// Its enable is a register of the same clock: it changes while the clock is high, and counts from
// the next rising edge on.
module DCCA(input CLKI, CE, output CLKO);
  reg enabled = 0;
  always @(negedge CLKI) enabled <= CE;
  assign CLKO = CLKI & enabled;
endmodule

// Both edges of a clock: a pair of bits, the first at the rising edge, is given at the next one.
module IDDRX1F(input D, SCLK, RST, output reg Q0, Q1);
  reg first = 0, second = 0;
  always @(negedge SCLK) second <= D;
  always @(posedge SCLK) begin
    first <= D;
    Q0 <= first;
    Q1 <= second;
  end
endmodule

// And the other way: what is there at the rising edge goes out from then on, the first half of it first.
module ODDRX1F(input D0, D1, SCLK, RST, output Q);
  reg first = 0, second = 0;
  always @(posedge SCLK) begin
    first <= D0;
    second <= D1;
  end
  assign Q = SCLK ? first : second;
endmodule

module DELAYG(input A, output Z);
  parameter DEL_MODE = "USER_DEFINED", DEL_VALUE = 0;
  assign Z = A;
endmodule

// A block RAM: 1,024 rows of two bytes of nine bits, two ports that read and write, or one that reads
// and one that writes 36 bits. What a port reads of a row the other writes in the same cycle is
// undefined in the part, and here the opposite of what was there: whoever counts on it is found out.
module DP16KD(
  input DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4,
    DIA3, DIA2, DIA1, DIA0, ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3,
    ADA2, ADA1, ADA0, CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0, DIB17, DIB16, DIB15, DIB14,
    DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0, ADB13,
    ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0, CEB, OCEB,
    CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
  output DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4,
    DOA3, DOA2, DOA1, DOA0, DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8,
    DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0
);
  parameter DATA_WIDTH_A = 18, DATA_WIDTH_B = 18, REGMODE_A = "NOREG", REGMODE_B = "NOREG";
  parameter RESETMODE = "SYNC", ASYNC_RESET_RELEASE = "SYNC", GSR = "ENABLED";
  parameter CSDECODE_A = "0b000", CSDECODE_B = "0b000", CLKAMUX = "CLKA", CLKBMUX = "CLKB";
  parameter WRITEMODE_A = "NORMAL", WRITEMODE_B = "NORMAL", WID = 0, INIT_DATA = "STATIC";
  parameter INITVAL_00 = 320'b0, INITVAL_01 = 320'b0, INITVAL_02 = 320'b0, INITVAL_03 = 320'b0, INITVAL_04
    = 320'b0, INITVAL_05 = 320'b0, INITVAL_06 = 320'b0, INITVAL_07 = 320'b0, INITVAL_08 = 320'b0,
    INITVAL_09 = 320'b0, INITVAL_0A = 320'b0, INITVAL_0B = 320'b0, INITVAL_0C = 320'b0, INITVAL_0D
    = 320'b0, INITVAL_0E = 320'b0, INITVAL_0F = 320'b0, INITVAL_10 = 320'b0, INITVAL_11 = 320'b0,
    INITVAL_12 = 320'b0, INITVAL_13 = 320'b0, INITVAL_14 = 320'b0, INITVAL_15 = 320'b0, INITVAL_16
    = 320'b0, INITVAL_17 = 320'b0, INITVAL_18 = 320'b0, INITVAL_19 = 320'b0, INITVAL_1A = 320'b0,
    INITVAL_1B = 320'b0, INITVAL_1C = 320'b0, INITVAL_1D = 320'b0, INITVAL_1E = 320'b0, INITVAL_1F
    = 320'b0, INITVAL_20 = 320'b0, INITVAL_21 = 320'b0, INITVAL_22 = 320'b0, INITVAL_23 = 320'b0,
    INITVAL_24 = 320'b0, INITVAL_25 = 320'b0, INITVAL_26 = 320'b0, INITVAL_27 = 320'b0, INITVAL_28
    = 320'b0, INITVAL_29 = 320'b0, INITVAL_2A = 320'b0, INITVAL_2B = 320'b0, INITVAL_2C = 320'b0,
    INITVAL_2D = 320'b0, INITVAL_2E = 320'b0, INITVAL_2F = 320'b0, INITVAL_30 = 320'b0, INITVAL_31
    = 320'b0, INITVAL_32 = 320'b0, INITVAL_33 = 320'b0, INITVAL_34 = 320'b0, INITVAL_35 = 320'b0,
    INITVAL_36 = 320'b0, INITVAL_37 = 320'b0, INITVAL_38 = 320'b0, INITVAL_39 = 320'b0, INITVAL_3A
    = 320'b0, INITVAL_3B = 320'b0, INITVAL_3C = 320'b0, INITVAL_3D = 320'b0, INITVAL_3E = 320'b0,
    INITVAL_3F = 320'b0;

  reg [17:0] rows [0:1023];
  wire [64 * 320 - 1:0] start = {INITVAL_3F, INITVAL_3E, INITVAL_3D, INITVAL_3C, INITVAL_3B, INITVAL_3A, INITVAL_39,
    INITVAL_38, INITVAL_37, INITVAL_36, INITVAL_35, INITVAL_34, INITVAL_33, INITVAL_32,
    INITVAL_31, INITVAL_30, INITVAL_2F, INITVAL_2E, INITVAL_2D, INITVAL_2C, INITVAL_2B,
    INITVAL_2A, INITVAL_29, INITVAL_28, INITVAL_27, INITVAL_26, INITVAL_25, INITVAL_24,
    INITVAL_23, INITVAL_22, INITVAL_21, INITVAL_20, INITVAL_1F, INITVAL_1E, INITVAL_1D,
    INITVAL_1C, INITVAL_1B, INITVAL_1A, INITVAL_19, INITVAL_18, INITVAL_17, INITVAL_16,
    INITVAL_15, INITVAL_14, INITVAL_13, INITVAL_12, INITVAL_11, INITVAL_10, INITVAL_0F,
    INITVAL_0E, INITVAL_0D, INITVAL_0C, INITVAL_0B, INITVAL_0A, INITVAL_09, INITVAL_08,
    INITVAL_07, INITVAL_06, INITVAL_05, INITVAL_04, INITVAL_03, INITVAL_02, INITVAL_01, INITVAL_00};
  integer i;
  initial for (i = 0; i < 1024; i = i + 1) rows[i] = start[20 * i +: 18];

  wire [17:0] dia = {DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0};
  wire [17:0] dib = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0};
  wire [13:0] ada = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
  wire [13:0] adb = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
  reg [17:0] doa = 0, dob = 0;
  assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0} = doa;
  assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0} = dob;

  // The bits of a pair of rows that a port of this width means, at their place in it.
  function [35:0] mask(input integer width, input [13:0] ad);
    case (width)
      36: mask = {{9{ad[3]}}, {9{ad[2]}}, {9{ad[1]}}, {9{ad[0]}}};
      18: mask = {18'b0, {9{ad[1]}}, {9{ad[0]}}} << 18 * ad[4];
      9: mask = 36'h1ff << 9 * ad[4:3];
      4: mask = 36'hf << 9 * ad[4:3] + 4 * ad[2];
      2: mask = 36'h3 << 9 * ad[4:3] + 2 * ad[2:1];
      default: mask = 36'h1 << 9 * ad[4:3] + ad[2:0];
    endcase
  endfunction

  function integer shift(input integer width, input [13:0] ad);
    case (width)
      36: shift = 0;
      18: shift = 18 * ad[4];
      9: shift = 9 * ad[4:3];
      4: shift = 9 * ad[4:3] + 4 * ad[2];
      2: shift = 9 * ad[4:3] + 2 * ad[2:1];
      default: shift = 9 * ad[4:3] + ad[2:0];
    endcase
  endfunction

  function [35:0] cut(input integer width, input [35:0] value);
    cut = width == 36 ? value : value & ((36'd1 << width) - 1);
  endfunction

  wire writes_a = CEA && WEA && !(RESETMODE == "SYNC" && RSTA);
  wire writes_b = CEB && WEB && !(RESETMODE == "SYNC" && RSTB);
  wire meet = ada[13:5] == adb[13:5];
  wire [35:0] pair_a = {rows[{ada[13:5], 1'b1}], rows[{ada[13:5], 1'b0}]};
  wire [35:0] pair_b = {rows[{adb[13:5], 1'b1}], rows[{adb[13:5], 1'b0}]};
  wire [35:0] mask_a = mask(DATA_WIDTH_A, ada), mask_b = mask(DATA_WIDTH_B, adb);
  wire [35:0] data_a = {DATA_WIDTH_A == 36 ? dib : 18'b0, dia} << shift(DATA_WIDTH_A, ada);
  wire [35:0] data_b = {18'b0, dib} << shift(DATA_WIDTH_B, adb);
  wire [35:0] next_a = (pair_a & ~mask_a) | (data_a & mask_a);
  wire [35:0] next_b = (pair_b & ~mask_b) | (data_b & mask_b);
  wire [35:0] seen_a = writes_b && meet ? pair_a ^ mask_b : pair_a;
  wire [35:0] seen_b = writes_a && meet ? pair_b ^ mask_a : pair_b;
  wire [35:0] read_a = cut(DATA_WIDTH_A,
    (writes_a && WRITEMODE_A == "WRITETHROUGH" ? next_a : seen_a) >> shift(DATA_WIDTH_A, ada));
  wire [35:0] read_b = cut(DATA_WIDTH_B,
    (writes_b && WRITEMODE_B == "WRITETHROUGH" ? next_b : seen_b) >> shift(DATA_WIDTH_B, adb));

  always @(posedge CLKA) begin
    if (writes_a) begin
      if (|mask_a[17:0]) rows[{ada[13:5], 1'b0}] <= next_a[17:0];
      if (|mask_a[35:18]) rows[{ada[13:5], 1'b1}] <= next_a[35:18];
    end
    if (DATA_WIDTH_B != 36) begin
      if (RSTA) doa <= 0;
      else if (CEA && !(WEA && WRITEMODE_A == "NORMAL")) doa <= read_a[17:0];
    end else begin
      if (RSTB) doa <= 0;
      else if (CEB) doa <= read_b[17:0];
    end
  end

  always @(posedge CLKB) begin
    if (writes_b && DATA_WIDTH_A != 36) begin
      if (|mask_b[17:0]) rows[{adb[13:5], 1'b0}] <= next_b[17:0];
      if (|mask_b[35:18]) rows[{adb[13:5], 1'b1}] <= next_b[35:18];
    end
    if (RSTB) dob <= 0;
    else if (CEB && !(WEB && WRITEMODE_B == "NORMAL"))
      dob <= DATA_WIDTH_B == 36 ? read_b[35:18] : read_b[17:0];
  end
endmodule
